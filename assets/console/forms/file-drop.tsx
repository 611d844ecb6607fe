/** An area to drop files on or to select them with a button, and the list of selected files. */
import { useId, useRef, useState } from 'preact/hooks';
import { Button } from '../components/button.tsx';
import type { ChosenFile } from './dropped-files.ts';

export function FileDrop({
  files,
  onFiles,
  onRemove,
}: {
  readonly files: readonly ChosenFile[];
  readonly onFiles: (files: Iterable<File>) => void;
  readonly onRemove: (file: ChosenFile) => void;
}) {
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  const [isOver, setOver] = useState(false);
  return (
    <section
      class={isOver ? 'drop is-over' : 'drop'}
      aria-labelledby={`${id}-title`}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        onFiles(event.dataTransfer?.files ?? []);
      }}
    >
      <p class="drop-title" id={`${id}-title`}>
        Drop the certificate, chain and private key here
      </p>
      <p class="quiet small">PEM, DER or PKCS#12 (.p12, .pfx), in one or more files</p>
      <input
        ref={input}
        id={id}
        class="sr-only"
        type="file"
        multiple
        tabIndex={-1}
        aria-label="Files to import"
        accept=".pem,.crt,.cer,.der,.key,.p12,.pfx,.txt,.ca-bundle,application/x-pem-file,application/x-pkcs12"
        onChange={({ currentTarget }) => {
          onFiles([...(currentTarget.files ?? [])]);
          // Lets the person select the same file again.
          currentTarget.value = '';
        }}
      />
      <Button onClick={() => input.current?.click()}>Choose files</Button>
      {files.length > 0 && (
        <ul class="chips" aria-label="Selected files">
          {files.map((file) => (
            <li class="chip" key={file.name}>
              <span>{file.name}</span>
              <button type="button" aria-label={`Remove ${file.name}`} onClick={() => onRemove(file)}>
                ×
              </button>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
