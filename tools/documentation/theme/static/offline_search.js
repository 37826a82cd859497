/* SPDX-License-Identifier: GPL-3.0-or-later */
// Browsers do not let a page from a file read the other pages, from which the search makes its excerpts.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
