# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: openipu.pod contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Generated from proto/ by tools/contract.py; do not edit."""

from __future__ import annotations

from ansible_collections.openipu.pod.plugins.module_utils.vipu.wire import Package
from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import virmgrpc

agent = Package(
    "openipu.vipu.agent.v1",
    (
        "CiFvcGVuaXB1L3ZpcHUvYWdlbnQvdjEvYWdlbnQucHJvdG8SFW9wZW5pcHUudmlwdS5hZ2VudC52MRoTdmlybWdycGMvdXNlci5w"
        "cm90byIwCgRGYWN0EhIKBG5hbWUYASABKAlSBG5hbWUSFAoFdmFsdWUYAiABKAlSBXZhbHVlItYCCgtNYWNoaW5lSW5mbxIXCgdi"
        "b290X2lkGAEgASgJUgZib290SWQSGQoIbnVtX2lwdXMYAiABKA1SB251bUlwdXMSMQoFZmFjdHMYAyADKAsyGy5vcGVuaXB1LnZp"
        "cHUuYWdlbnQudjEuRmFjdFIFZmFjdHMSMgoEaXB1cxgEIAMoCzIeLm9wZW5pcHUudmlwdS5hZ2VudC52MS5JcHVJbmZvUgRpcHVz"
        "EkwKCHZlcnNpb25zGAUgAygLMjAub3BlbmlwdS52aXB1LmFnZW50LnYxLk1hY2hpbmVJbmZvLlZlcnNpb25zRW50cnlSCHZlcnNp"
        "b25zEiEKDHJuaWNfYWRkcmVzcxgGIAEoCVILcm5pY0FkZHJlc3MaOwoNVmVyc2lvbnNFbnRyeRIQCgNrZXkYASABKAlSA2tleRIU"
        "CgV2YWx1ZRgCIAEoCVIFdmFsdWU6AjgBIk4KB0lwdUluZm8SEAoDaXB1GAEgASgNUgNpcHUSMQoFZmFjdHMYAiADKAsyGy5vcGVu"
        "aXB1LnZpcHUuYWdlbnQudjEuRmFjdFIFZmFjdHMiEAoOR2V0SW5mb1JlcXVlc3QiRQoMV2F0Y2hSZXF1ZXN0EjUKFmhlYXJ0YmVh"
        "dF9taWxsaXNlY29uZHMYASABKA1SFWhlYXJ0YmVhdE1pbGxpc2Vjb25kcyJkCgpBZ2VudEV2ZW50EhcKB2Jvb3RfaWQYASABKAlS"
        "BmJvb3RJZBI9CgZmYXVsdHMYAiADKAsyJS5vcGVuaXB1LnZpcHUuYWdlbnQudjEuUGFydGl0aW9uRmF1bHRSBmZhdWx0cyJdCg5Q"
        "YXJ0aXRpb25GYXVsdBIhCgxwYXJ0aXRpb25faWQYASABKAlSC3BhcnRpdGlvbklkEhAKA2lwdRgCIAEoDVIDaXB1EhYKBnJlYXNv"
        "bhgDIAEoCVIGcmVhc29uIhoKGExpc3RJcHVBdHRyaWJ1dGVzUmVxdWVzdCKQAwoWTGlzdElwdUF0dHJpYnV0ZXNSZXBseRJLCgRp"
        "cHVzGAEgAygLMjcub3BlbmlwdS52aXB1LmFnZW50LnYxLkxpc3RJcHVBdHRyaWJ1dGVzUmVwbHkuSXB1c0VudHJ5UgRpcHVzGrUB"
        "CgpBdHRyaWJ1dGVzEmgKCmF0dHJpYnV0ZXMYASADKAsySC5vcGVuaXB1LnZpcHUuYWdlbnQudjEuTGlzdElwdUF0dHJpYnV0ZXNS"
        "ZXBseS5BdHRyaWJ1dGVzLkF0dHJpYnV0ZXNFbnRyeVIKYXR0cmlidXRlcxo9Cg9BdHRyaWJ1dGVzRW50cnkSEAoDa2V5GAEgASgJ"
        "UgNrZXkSFAoFdmFsdWUYAiABKAlSBXZhbHVlOgI4ARpxCglJcHVzRW50cnkSEAoDa2V5GAEgASgNUgNrZXkSTgoFdmFsdWUYAiAB"
        "KAsyOC5vcGVuaXB1LnZpcHUuYWdlbnQudjEuTGlzdElwdUF0dHJpYnV0ZXNSZXBseS5BdHRyaWJ1dGVzUgV2YWx1ZToCOAEigAEK"
        "CFNoYXJlSXB1EhAKA2lwdRgBIAEoDVIDaXB1Eh0KCnJvdXRpbmdfaWQYAiABKA1SCXJvdXRpbmdJZBIsChJpcHVsaW5rX3NlZ21l"
        "bnRfaWQYAyABKA1SEGlwdWxpbmtTZWdtZW50SWQSFQoGZ2NkX2lkGAQgASgNUgVnY2RJZCLtAgoOUGFydGl0aW9uU2hhcmUSIQoM"
        "cGFydGl0aW9uX2lkGAEgASgJUgtwYXJ0aXRpb25JZBIzCgRpcHVzGAIgAygLMh8ub3BlbmlwdS52aXB1LmFnZW50LnYxLlNoYXJl"
        "SXB1UgRpcHVzEk4KFGlwdWxpbmtfcm91dGluZ190eXBlGAMgASgOMhwudmlybWdycGMuSXB1TGlua1JvdXRpbmdUeXBlUhJpcHVs"
        "aW5rUm91dGluZ1R5cGUSRAoPZ3dfcm91dGluZ190eXBlGAQgASgOMhwudmlybWdycGMuR2F0ZXdheVJvdXRpbmdUeXBlUg1nd1Jv"
        "dXRpbmdUeXBlEi8KCXN5bmNfdHlwZRgFIAEoDjISLnZpcm1ncnBjLlN5bmNUeXBlUghzeW5jVHlwZRImCg5yZWNvbmZpZ3VyYWJs"
        "ZRgGIAEoCFIOcmVjb25maWd1cmFibGUSFAoFcmVzZXQYByABKAhSBXJlc2V0IqkBCgtTaGFyZVJlc3VsdBIhCgxwYXJ0aXRpb25f"
        "aWQYASABKAlSC3BhcnRpdGlvbklkEhQKBWVycm9yGAIgASgJUgVlcnJvchIvCgdkZXZpY2VzGAMgAygLMhUudmlybWdycGMuSXB1"
        "b2ZEZXZpY2VSB2RldmljZXMSMAoUaXB1b2Zfc2VydmVyX3ZlcnNpb24YBCABKAlSEmlwdW9mU2VydmVyVmVyc2lvbiJRChBDb25m"
        "aWd1cmVSZXF1ZXN0Ej0KBnNoYXJlcxgBIAMoCzIlLm9wZW5pcHUudmlwdS5hZ2VudC52MS5QYXJ0aXRpb25TaGFyZVIGc2hhcmVz"
        "Ik4KDkNvbmZpZ3VyZVJlcGx5EjwKB3Jlc3VsdHMYASADKAsyIi5vcGVuaXB1LnZpcHUuYWdlbnQudjEuU2hhcmVSZXN1bHRSB3Jl"
        "c3VsdHMiNQoOUmVsZWFzZVJlcXVlc3QSIwoNcGFydGl0aW9uX2lkcxgBIAMoCVIMcGFydGl0aW9uSWRzIkwKDFJlbGVhc2VSZXBs"
        "eRI8CgdyZXN1bHRzGAEgAygLMiIub3BlbmlwdS52aXB1LmFnZW50LnYxLlNoYXJlUmVzdWx0UgdyZXN1bHRzIroBCglDYWJsZVBv"
        "cnQSOQoEa2luZBgBIAEoDjIlLm9wZW5pcHUudmlwdS5hZ2VudC52MS5DYWJsZVBvcnQuS2luZFIEa2luZBISCgRwb3J0GAIgASgN"
        "UgRwb3J0EhYKBnNlcmlhbBgDIAEoCVIGc2VyaWFsIkYKBEtpbmQSFAoQS0lORF9VTlNQRUNJRklFRBAAEgwKCElQVV9MSU5LEAES"
        "CwoHR1dfTElOSxACEg0KCVNZTkNfTElOSxADIhMKEVJlYWRDYWJsZXNSZXF1ZXN0IkkKD1JlYWRDYWJsZXNSZXBseRI2CgVwb3J0"
        "cxgBIAMoCzIgLm9wZW5pcHUudmlwdS5hZ2VudC52MS5DYWJsZVBvcnRSBXBvcnRzIloKCUxpbmtTdGF0ZRISCgRsaW5rGAEgASgJ"
        "UgRsaW5rEg4KAnVwGAIgASgIUgJ1cBIpChBjb3JyZWN0ZWRfZXJyb3JzGAMgASgEUg9jb3JyZWN0ZWRFcnJvcnMiEwoRVHJhaW5M"
        "aW5rc1JlcXVlc3QiSQoPVHJhaW5MaW5rc1JlcGx5EjYKBWxpbmtzGAEgAygLMiAub3BlbmlwdS52aXB1LmFnZW50LnYxLkxpbmtT"
        "dGF0ZVIFbGlua3MiEAoOUmVhZFBmY1JlcXVlc3Qi9AEKDFJlYWRQZmNSZXBseRJTCgppbnRlcmZhY2VzGAEgAygLMjMub3Blbmlw"
        "dS52aXB1LmFnZW50LnYxLlJlYWRQZmNSZXBseS5JbnRlcmZhY2VzRW50cnlSCmludGVyZmFjZXMaIwoHQ2xhc3NlcxIYCgdjbGFz"
        "c2VzGAEgAygNUgdjbGFzc2VzGmoKD0ludGVyZmFjZXNFbnRyeRIQCgNrZXkYASABKAlSA2tleRJBCgV2YWx1ZRgCIAEoCzIrLm9w"
        "ZW5pcHUudmlwdS5hZ2VudC52MS5SZWFkUGZjUmVwbHkuQ2xhc3Nlc1IFdmFsdWU6AjgBIksKCFByZXNlbmNlEhIKBGhvc3QYASAB"
        "KAlSBGhvc3QSEgoEcG9ydBgCIAEoDVIEcG9ydBIXCgdib290X2lkGAMgASgJUgZib290SWQy9wUKDEFnZW50U2VydmljZRJRCgVX"
        "YXRjaBIjLm9wZW5pcHUudmlwdS5hZ2VudC52MS5XYXRjaFJlcXVlc3QaIS5vcGVuaXB1LnZpcHUuYWdlbnQudjEuQWdlbnRFdmVu"
        "dDABElQKB0dldEluZm8SJS5vcGVuaXB1LnZpcHUuYWdlbnQudjEuR2V0SW5mb1JlcXVlc3QaIi5vcGVuaXB1LnZpcHUuYWdlbnQu"
        "djEuTWFjaGluZUluZm8ScwoRTGlzdElwdUF0dHJpYnV0ZXMSLy5vcGVuaXB1LnZpcHUuYWdlbnQudjEuTGlzdElwdUF0dHJpYnV0"
        "ZXNSZXF1ZXN0Gi0ub3BlbmlwdS52aXB1LmFnZW50LnYxLkxpc3RJcHVBdHRyaWJ1dGVzUmVwbHkSWwoJQ29uZmlndXJlEicub3Bl"
        "bmlwdS52aXB1LmFnZW50LnYxLkNvbmZpZ3VyZVJlcXVlc3QaJS5vcGVuaXB1LnZpcHUuYWdlbnQudjEuQ29uZmlndXJlUmVwbHkS"
        "VQoHUmVsZWFzZRIlLm9wZW5pcHUudmlwdS5hZ2VudC52MS5SZWxlYXNlUmVxdWVzdBojLm9wZW5pcHUudmlwdS5hZ2VudC52MS5S"
        "ZWxlYXNlUmVwbHkSXgoKUmVhZENhYmxlcxIoLm9wZW5pcHUudmlwdS5hZ2VudC52MS5SZWFkQ2FibGVzUmVxdWVzdBomLm9wZW5p"
        "cHUudmlwdS5hZ2VudC52MS5SZWFkQ2FibGVzUmVwbHkSXgoKVHJhaW5MaW5rcxIoLm9wZW5pcHUudmlwdS5hZ2VudC52MS5UcmFp"
        "bkxpbmtzUmVxdWVzdBomLm9wZW5pcHUudmlwdS5hZ2VudC52MS5UcmFpbkxpbmtzUmVwbHkSVQoHUmVhZFBmYxIlLm9wZW5pcHUu"
        "dmlwdS5hZ2VudC52MS5SZWFkUGZjUmVxdWVzdBojLm9wZW5pcHUudmlwdS5hZ2VudC52MS5SZWFkUGZjUmVwbHliBnByb3RvMw==",
    ),
    requires=(virmgrpc,),
)
