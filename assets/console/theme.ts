/** Light or dark: as the system wishes, unless the person chose. The colours themselves are in styles/tokens.css. */

export type Theme = 'system' | 'light' | 'dark';

const storageKey = 'vault-theme';

/** What the person chose in this browser. */
export function savedTheme(): Theme {
  try {
    const saved = localStorage.getItem(storageKey);
    return saved === 'light' || saved === 'dark' ? saved : 'system';
  } catch {
    // Storage can be forbidden; the system's wish is always there.
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
    // Then the choice lasts as long as this page.
  }
}
