// Light or dark, as the visitor chose: kept in localStorage where that is allowed.
const key = "parlor.theme";
type Theme = "light" | "dark";

function stored(): Theme | null {
  try {
    const value = localStorage.getItem(key);
    return value === "light" || value === "dark" ? value : null;
  } catch {
    return null; // storage is forbidden here
  }
}

/** Returns the theme that is shown now. */
export function shownTheme(): Theme {
  return stored() ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}

/** Makes a button change the theme. early.ts has shown the stored one. */
export function startTheme(button: HTMLButtonElement | null): void {
  if (!button) return;
  button.hidden = false;
  const label = () => button.setAttribute("aria-label", `Switch to the ${shownTheme() === "dark" ? "light" : "dark"} theme`);
  label();
  button.addEventListener("click", () => {
    const next = shownTheme() === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    try {
      localStorage.setItem(key, next);
    } catch {
      // It counts for this page only.
    }
    label();
  });
}
