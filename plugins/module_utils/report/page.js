// SPDX-License-Identifier: GPL-3.0-or-later
// Shows the label of a cable for mouse and keyboard. The page is readable without scripts.
(function () {
  "use strict";
  var tip = document.getElementById("tip");
  function cable(event) {
    return event.target.closest ? event.target.closest(".cable[aria-label]") : null;
  }
  function showLabel(event) {
    var active = document.activeElement;
    var found = cable(event) || (active && active.matches(".cable[aria-label]") ? active : null);
    tip.textContent = found ? found.getAttribute("aria-label") : "";
  }
  document.addEventListener("mouseover", showLabel);
  document.addEventListener("focusin", showLabel);
  document.addEventListener("click", function (event) {
    var link = event.target.closest ? event.target.closest('a[href^="#cable-"]') : null;
    var target = link && document.getElementById(link.getAttribute("href").slice(1));
    if (!target) { return; }
    target.closest("details").open = true;
    target.focus({preventScroll: true});
    target.scrollIntoView({block: "center"});
    event.preventDefault();
  });
  var steps = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1};
  document.addEventListener("keydown", function (event) {
    var from = steps[event.key] && cable(event);
    if (!from) { return; }
    var all = Array.from(from.closest("svg").querySelectorAll(".cable[aria-label]"));
    all[(all.indexOf(from) + steps[event.key] + all.length) % all.length].focus();
    event.preventDefault();
  });
  window.addEventListener("beforeprint", function () {
    document.querySelectorAll("details").forEach(function (each) { each.open = true; });
  });
})();
