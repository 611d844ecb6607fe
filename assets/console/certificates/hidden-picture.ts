/** Whether the person hid the picture of the certificates in this browser. */

const storageKey = 'vault-picture';

export function isPictureHidden(): boolean {
  try {
    return localStorage.getItem(storageKey) === 'hidden';
  } catch {
    // Storage can be blocked; show the picture.
    return false;
  }
}

export function hidePicture(isHidden: boolean): void {
  try {
    if (isHidden) localStorage.setItem(storageKey, 'hidden');
    else localStorage.removeItem(storageKey);
  } catch {
    // Without storage the choice lasts until the page is closed.
  }
}
