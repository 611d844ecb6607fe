/** Saves bytes of the page as a download. */

/** The browser asks or saves as it does for links. */
export function saveFile(content: Blob, fileName: string): void {
  const url = URL.createObjectURL(content);
  const link = document.createElement('a');
  link.href = url;
  link.download = fileName;
  link.click();
  // The download has its own reference to the bytes once the click was handled.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
