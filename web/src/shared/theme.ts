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

function apply(theme: Theme | null): void {
  if (theme) document.documentElement.dataset.theme = theme;
}

/** Returns the theme that is shown now. */
export function shownTheme(): Theme {
  return stored() ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}

/** Shows the stored theme, and makes a button change it. */
export function startTheme(button: HTMLButtonElement | null): void {
  apply(stored());
  if (!button) return;
  button.hidden = false;
  const label = () => button.setAttribute("aria-label", `Switch to the ${shownTheme() === "dark" ? "light" : "dark"} theme`);
  label();
  button.addEventListener("click", () => {
    const next = shownTheme() === "dark" ? "light" : "dark";
    apply(next);
    try {
      localStorage.setItem(key, next);
    } catch {
      // It counts for this page only.
    }
    label();
  });
}
