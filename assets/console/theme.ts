/** The light or dark theme: the system's, unless the person selected one. The colors are in styles/tokens.css. */

export type Theme = 'system' | 'light' | 'dark';

const storageKey = 'vault-theme';

/** The theme selected in this browser. */
export function savedTheme(): Theme {
  try {
    const saved = localStorage.getItem(storageKey);
    return saved === 'light' || saved === 'dark' ? saved : 'system';
  } catch {
    // Storage can be blocked; use the theme of the system.
    return 'system';
  }
}

export function applyTheme(theme: Theme): void {
  if (theme === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

export function chooseTheme(theme: Theme): void {
  applyTheme(theme);
  try {
    localStorage.setItem(storageKey, theme);
  } catch {
    // Without storage the choice lasts until the page is closed.
  }
}
