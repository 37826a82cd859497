# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
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
        "dF9taWxsaXNlY29uZHMYASABKA1SFWhlYXJ0YmVhdE1pbGxpc2Vjb25kcyKlAQoKQWdlbnRFdmVudBIXCgdib290X2lkGAEgASgJ"
        "UgZib290SWQSPQoGZmF1bHRzGAIgAygLMiUub3BlbmlwdS52aXB1LmFnZW50LnYxLlBhcnRpdGlvbkZhdWx0UgZmYXVsdHMSIwoN"
        "cGFydGl0aW9uX2lkcxgDIAMoCVIMcGFydGl0aW9uSWRzEhoKCHJldmlzaW9uGAQgASgEUghyZXZpc2lvbiJdCg5QYXJ0aXRpb25G"
        "YXVsdBIhCgxwYXJ0aXRpb25faWQYASABKAlSC3BhcnRpdGlvbklkEhAKA2lwdRgCIAEoDVIDaXB1EhYKBnJlYXNvbhgDIAEoCVIG"
        "cmVhc29uIhoKGExpc3RJcHVBdHRyaWJ1dGVzUmVxdWVzdCKQAwoWTGlzdElwdUF0dHJpYnV0ZXNSZXBseRJLCgRpcHVzGAEgAygL"
        "Mjcub3BlbmlwdS52aXB1LmFnZW50LnYxLkxpc3RJcHVBdHRyaWJ1dGVzUmVwbHkuSXB1c0VudHJ5UgRpcHVzGrUBCgpBdHRyaWJ1"
        "dGVzEmgKCmF0dHJpYnV0ZXMYASADKAsySC5vcGVuaXB1LnZpcHUuYWdlbnQudjEuTGlzdElwdUF0dHJpYnV0ZXNSZXBseS5BdHRy"
        "aWJ1dGVzLkF0dHJpYnV0ZXNFbnRyeVIKYXR0cmlidXRlcxo9Cg9BdHRyaWJ1dGVzRW50cnkSEAoDa2V5GAEgASgJUgNrZXkSFAoF"
        "dmFsdWUYAiABKAlSBXZhbHVlOgI4ARpxCglJcHVzRW50cnkSEAoDa2V5GAEgASgNUgNrZXkSTgoFdmFsdWUYAiABKAsyOC5vcGVu"
        "aXB1LnZpcHUuYWdlbnQudjEuTGlzdElwdUF0dHJpYnV0ZXNSZXBseS5BdHRyaWJ1dGVzUgV2YWx1ZToCOAEigAEKCFNoYXJlSXB1"
        "EhAKA2lwdRgBIAEoDVIDaXB1Eh0KCnJvdXRpbmdfaWQYAiABKA1SCXJvdXRpbmdJZBIsChJpcHVsaW5rX3NlZ21lbnRfaWQYAyAB"
        "KA1SEGlwdWxpbmtTZWdtZW50SWQSFQoGZ2NkX2lkGAQgASgNUgVnY2RJZCLtAgoOUGFydGl0aW9uU2hhcmUSIQoMcGFydGl0aW9u"
        "X2lkGAEgASgJUgtwYXJ0aXRpb25JZBIzCgRpcHVzGAIgAygLMh8ub3BlbmlwdS52aXB1LmFnZW50LnYxLlNoYXJlSXB1UgRpcHVz"
        "Ek4KFGlwdWxpbmtfcm91dGluZ190eXBlGAMgASgOMhwudmlybWdycGMuSXB1TGlua1JvdXRpbmdUeXBlUhJpcHVsaW5rUm91dGlu"
        "Z1R5cGUSRAoPZ3dfcm91dGluZ190eXBlGAQgASgOMhwudmlybWdycGMuR2F0ZXdheVJvdXRpbmdUeXBlUg1nd1JvdXRpbmdUeXBl"
        "Ei8KCXN5bmNfdHlwZRgFIAEoDjISLnZpcm1ncnBjLlN5bmNUeXBlUghzeW5jVHlwZRImCg5yZWNvbmZpZ3VyYWJsZRgGIAEoCFIO"
        "cmVjb25maWd1cmFibGUSFAoFcmVzZXQYByABKAhSBXJlc2V0IqkBCgtTaGFyZVJlc3VsdBIhCgxwYXJ0aXRpb25faWQYASABKAlS"
        "C3BhcnRpdGlvbklkEhQKBWVycm9yGAIgASgJUgVlcnJvchIvCgdkZXZpY2VzGAMgAygLMhUudmlybWdycGMuSXB1b2ZEZXZpY2VS"
        "B2RldmljZXMSMAoUaXB1b2Zfc2VydmVyX3ZlcnNpb24YBCABKAlSEmlwdW9mU2VydmVyVmVyc2lvbiJRChBDb25maWd1cmVSZXF1"
        "ZXN0Ej0KBnNoYXJlcxgBIAMoCzIlLm9wZW5pcHUudmlwdS5hZ2VudC52MS5QYXJ0aXRpb25TaGFyZVIGc2hhcmVzIoMBCg5Db25m"
        "aWd1cmVSZXBseRI8CgdyZXN1bHRzGAEgAygLMiIub3BlbmlwdS52aXB1LmFnZW50LnYxLlNoYXJlUmVzdWx0UgdyZXN1bHRzEhcK"
        "B2Jvb3RfaWQYAiABKAlSBmJvb3RJZBIaCghyZXZpc2lvbhgDIAEoBFIIcmV2aXNpb24iNQoOUmVsZWFzZVJlcXVlc3QSIwoNcGFy"
        "dGl0aW9uX2lkcxgBIAMoCVIMcGFydGl0aW9uSWRzIoEBCgxSZWxlYXNlUmVwbHkSPAoHcmVzdWx0cxgBIAMoCzIiLm9wZW5pcHUu"
        "dmlwdS5hZ2VudC52MS5TaGFyZVJlc3VsdFIHcmVzdWx0cxIXCgdib290X2lkGAIgASgJUgZib290SWQSGgoIcmV2aXNpb24YAyAB"
        "KARSCHJldmlzaW9uIroBCglDYWJsZVBvcnQSOQoEa2luZBgBIAEoDjIlLm9wZW5pcHUudmlwdS5hZ2VudC52MS5DYWJsZVBvcnQu"
        "S2luZFIEa2luZBISCgRwb3J0GAIgASgNUgRwb3J0EhYKBnNlcmlhbBgDIAEoCVIGc2VyaWFsIkYKBEtpbmQSFAoQS0lORF9VTlNQ"
        "RUNJRklFRBAAEgwKCElQVV9MSU5LEAESCwoHR1dfTElOSxACEg0KCVNZTkNfTElOSxADIhMKEVJlYWRDYWJsZXNSZXF1ZXN0IkkK"
        "D1JlYWRDYWJsZXNSZXBseRI2CgVwb3J0cxgBIAMoCzIgLm9wZW5pcHUudmlwdS5hZ2VudC52MS5DYWJsZVBvcnRSBXBvcnRzIloK"
        "CUxpbmtTdGF0ZRISCgRsaW5rGAEgASgJUgRsaW5rEg4KAnVwGAIgASgIUgJ1cBIpChBjb3JyZWN0ZWRfZXJyb3JzGAMgASgEUg9j"
        "b3JyZWN0ZWRFcnJvcnMiEwoRVHJhaW5MaW5rc1JlcXVlc3QiSQoPVHJhaW5MaW5rc1JlcGx5EjYKBWxpbmtzGAEgAygLMiAub3Bl"
        "bmlwdS52aXB1LmFnZW50LnYxLkxpbmtTdGF0ZVIFbGlua3MiEAoOUmVhZFBmY1JlcXVlc3Qi9AEKDFJlYWRQZmNSZXBseRJTCgpp"
        "bnRlcmZhY2VzGAEgAygLMjMub3BlbmlwdS52aXB1LmFnZW50LnYxLlJlYWRQZmNSZXBseS5JbnRlcmZhY2VzRW50cnlSCmludGVy"
        "ZmFjZXMaIwoHQ2xhc3NlcxIYCgdjbGFzc2VzGAEgAygNUgdjbGFzc2VzGmoKD0ludGVyZmFjZXNFbnRyeRIQCgNrZXkYASABKAlS"
        "A2tleRJBCgV2YWx1ZRgCIAEoCzIrLm9wZW5pcHUudmlwdS5hZ2VudC52MS5SZWFkUGZjUmVwbHkuQ2xhc3Nlc1IFdmFsdWU6AjgB"
        "IksKCFByZXNlbmNlEhIKBGhvc3QYASABKAlSBGhvc3QSEgoEcG9ydBgCIAEoDVIEcG9ydBIXCgdib290X2lkGAMgASgJUgZib290"
        "SWQy9wUKDEFnZW50U2VydmljZRJRCgVXYXRjaBIjLm9wZW5pcHUudmlwdS5hZ2VudC52MS5XYXRjaFJlcXVlc3QaIS5vcGVuaXB1"
        "LnZpcHUuYWdlbnQudjEuQWdlbnRFdmVudDABElQKB0dldEluZm8SJS5vcGVuaXB1LnZpcHUuYWdlbnQudjEuR2V0SW5mb1JlcXVl"
        "c3QaIi5vcGVuaXB1LnZpcHUuYWdlbnQudjEuTWFjaGluZUluZm8ScwoRTGlzdElwdUF0dHJpYnV0ZXMSLy5vcGVuaXB1LnZpcHUu"
        "YWdlbnQudjEuTGlzdElwdUF0dHJpYnV0ZXNSZXF1ZXN0Gi0ub3BlbmlwdS52aXB1LmFnZW50LnYxLkxpc3RJcHVBdHRyaWJ1dGVz"
        "UmVwbHkSWwoJQ29uZmlndXJlEicub3BlbmlwdS52aXB1LmFnZW50LnYxLkNvbmZpZ3VyZVJlcXVlc3QaJS5vcGVuaXB1LnZpcHUu"
        "YWdlbnQudjEuQ29uZmlndXJlUmVwbHkSVQoHUmVsZWFzZRIlLm9wZW5pcHUudmlwdS5hZ2VudC52MS5SZWxlYXNlUmVxdWVzdBoj"
        "Lm9wZW5pcHUudmlwdS5hZ2VudC52MS5SZWxlYXNlUmVwbHkSXgoKUmVhZENhYmxlcxIoLm9wZW5pcHUudmlwdS5hZ2VudC52MS5S"
        "ZWFkQ2FibGVzUmVxdWVzdBomLm9wZW5pcHUudmlwdS5hZ2VudC52MS5SZWFkQ2FibGVzUmVwbHkSXgoKVHJhaW5MaW5rcxIoLm9w"
        "ZW5pcHUudmlwdS5hZ2VudC52MS5UcmFpbkxpbmtzUmVxdWVzdBomLm9wZW5pcHUudmlwdS5hZ2VudC52MS5UcmFpbkxpbmtzUmVw"
        "bHkSVQoHUmVhZFBmYxIlLm9wZW5pcHUudmlwdS5hZ2VudC52MS5SZWFkUGZjUmVxdWVzdBojLm9wZW5pcHUudmlwdS5hZ2VudC52"
        "MS5SZWFkUGZjUmVwbHliBnByb3RvMw==",
    ),
    requires=(virmgrpc,),
)
