// The theme: a cookie that the server reads, so that no page ever flashes in the other one.
import { enhance, on, text } from "./dom.js";

const system = matchMedia("(prefers-color-scheme: dark)");
const root = document.documentElement;

function current() {
  return root.dataset.theme ?? (system.matches ? "dark" : "light");
}

function label() {
  const words = text(current() === "dark" ? "themeLight" : "themeDark");
  for (const button of document.querySelectorAll("[data-theme-toggle]")) {
    const span = button.querySelector("[data-theme-label]");
    if (span) span.textContent = words;
    else button.setAttribute("aria-label", words);
  }
}

function choose(theme) {
  const followsSystem = theme === (system.matches ? "dark" : "light");
  if (followsSystem) delete root.dataset.theme;
  else root.dataset.theme = theme;
  const secure = location.protocol === "https:" ? "; secure" : "";
  document.cookie = `chorus_theme=${followsSystem ? "" : theme}; path=/; samesite=lax; max-age=${
    followsSystem ? 0 : 31536000
  }${secure}`;
  label();
}

on("click", "[data-theme-toggle]", () => choose(current() === "dark" ? "light" : "dark"));
system.addEventListener("change", label);
enhance("[data-theme-toggle]", label);
