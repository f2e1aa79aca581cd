// Before anything is drawn, so that nobody who chose dark sees a white flash. The rest is in src/frame/theme.ts.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem("threadmill.theme");
  } catch {
    // Storage is switched off: the system's theme it is.
  }
  const dark = chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
})();
