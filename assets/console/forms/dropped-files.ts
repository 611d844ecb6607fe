/** Files that a person chose or dropped, as the API takes them. */

export type ChosenFile = { readonly name: string; readonly size: number; readonly content_base64: string };

/** Reads them whole; PEM and PKCS#12 are small. Throws where the browser cannot read one. */
export function readFiles(files: Iterable<File>): Promise<ChosenFile[]> {
  return Promise.all(Array.from(files, readFile));
}

/** The files with new ones of the same name in place of old ones. */
export function withFiles(now: readonly ChosenFile[], added: readonly ChosenFile[]): ChosenFile[] {
  return [...now.filter(({ name }) => !added.some((file) => file.name === name)), ...added];
}

export function isPkcs12(name: string): boolean {
  return /\.(p12|pfx)$/i.test(name);
}

function readFile(file: File): Promise<ChosenFile> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onerror = () => reject(reader.error ?? new Error(`${file.name} cannot be read`));
    reader.onload = () => {
      // data:…;base64,AAAA
      const content_base64 = String(reader.result).replace(/^[^,]*,?/, '');
      resolve({ name: file.name, size: file.size, content_base64 });
    };
    reader.readAsDataURL(file);
  });
}
