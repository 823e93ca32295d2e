import { startTheme } from "../shared/theme";

startTheme(document.querySelector<HTMLButtonElement>("[data-act=theme]"));
