/** The files that the installer downloads to a machine, and their names there. */
import { useId } from 'preact/hooks';
import { Checkbox } from '../components/field.tsx';
import type { InstallerFile } from './shell-command.ts';

const artifacts = [
  { name: 'fullchain.crt', label: 'Full chain', hint: 'certificate and chain' },
  { name: 'private.key', label: 'Private key', hint: 'PKCS#8' },
  { name: 'combined.pem', label: 'Key and full chain', hint: 'private key, then certificate and chain' },
  { name: 'keystore.p12', label: 'Keystore', hint: 'PKCS#12 with private key, certificate and chain' },
  { name: 'certificate.crt', label: 'Certificate', hint: 'certificate only' },
  { name: 'chain.crt', label: 'Chain', hint: 'intermediates only' },
  { name: 'certificate.der', label: 'Certificate in DER', hint: 'certificate only, binary' },
] as const;

export function InstallerFiles({
  files,
  error,
  onFiles,
}: {
  readonly files: readonly InstallerFile[];
  readonly error: string | undefined;
  readonly onFiles: (files: readonly InstallerFile[]) => void;
}) {
  const id = useId();
  const change = (artifact: string, file: InstallerFile | undefined) => {
    const others = new Map(files.map((known) => [known.artifact, known]));
    if (file === undefined) others.delete(artifact);
    else others.set(artifact, file);
    onFiles(artifacts.flatMap(({ name }) => others.get(name) ?? []));
  };
  return (
    <fieldset class="file-rows">
      <legend>Files and their names on the machine</legend>
      {artifacts.map(({ name, label, hint }) => {
        const file = files.find(({ artifact }) => artifact === name);
        return (
          <div class="file-row" key={name}>
            <Checkbox
              label={`${label} (${name})`}
              isChecked={file !== undefined}
              onChecked={(isChecked) => change(name, isChecked ? { artifact: name, output: '' } : undefined)}
            />
            {file !== undefined && (
              <input
                class="input"
                aria-label={`File name of ${name}: ${hint}`}
                id={`${id}-${name}`}
                value={file.output}
                placeholder={name}
                spellcheck={false}
                onInput={({ currentTarget }) =>
                  change(name, { artifact: name, output: currentTarget.value.replaceAll(/[/=]/g, '') })
                }
              />
            )}
          </div>
        );
      })}
      {error && (
        <p class="field-error" role="alert">
          {error}
        </p>
      )}
    </fieldset>
  );
}
