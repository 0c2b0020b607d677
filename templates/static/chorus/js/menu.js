// Menus are <details>: this closes them on Escape, on a click elsewhere and when focus leaves.

function open() {
  return document.querySelectorAll("details[data-menu][open]");
}

document.addEventListener("click", (event) => {
  for (const menu of open()) if (!menu.contains(event.target)) menu.open = false;
});

document.addEventListener("focusin", (event) => {
  for (const menu of open()) if (!menu.contains(event.target)) menu.open = false;
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const menu of open()) {
    menu.open = false;
    menu.querySelector("summary")?.focus();
  }
});
