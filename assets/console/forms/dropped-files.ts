/** Files that a person selected or dropped, in the format of the API. */

export type ChosenFile = { readonly name: string; readonly size: number; readonly content_base64: string };

/** Reads all files. Throws if the browser cannot read one of them. */
export function readFiles(files: Iterable<File>): Promise<ChosenFile[]> {
  return Promise.all(Array.from(files, readFile));
}

/** The files with the added ones, which replace files of the same name. */
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
