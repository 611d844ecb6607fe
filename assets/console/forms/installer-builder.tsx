/** The installer command for a key, made from choices and ready to copy. */
import { useState } from 'preact/hooks';
import { useCertificates } from '../certificates.ts';
import { CopyBlock } from '../components/copy.tsx';
import { Checkbox } from '../components/field.tsx';
import { Notice } from '../components/notice.tsx';
import { Select } from '../components/select.tsx';
import { recipeOf, recipes } from '../installer-recipes.ts';
import type { ApiKey } from '../shapes.ts';
import { type InstallerChoices, installerCommand } from '../shell-command.ts';
import { InstallerFiles } from './installer-files.tsx';
import { InstallerOptions } from './installer-options.tsx';

export function InstallerBuilder({
  apiKey,
  rawKey,
}: {
  readonly apiKey: ApiKey;
  /** Known only when the key has just been made. */
  readonly rawKey?: string;
}) {
  const isAny = apiKey.certificates[0] === '*';
  const { data } = useCertificates(isAny);
  const names = isAny ? (data?.items ?? []).map(({ name }) => name) : apiKey.certificates;
  const [recipe, setRecipe] = useState('nginx');
  const [choices, setChoices] = useState<InstallerChoices>(() => ({
    server: location.origin,
    certificate: '',
    schedule: '',
    withSudo: true,
    ...recipes.nginx,
  }));
  const change = (changes: Partial<InstallerChoices>) => setChoices((now) => ({ ...now, ...changes }));
  const certificate = choices.certificate || (names[0] ?? '');
  const configuration = recipeOf(recipe)?.configuration ?? '';
  const needsKeys = choices.files.some(({ artifact }) => artifact === 'private.key');
  const isReady = certificate !== '' && choices.files.length > 0 && choices.destination !== '';
  return (
    <div class="stack">
      <div class="card stack">
        <div class="columns">
          <Select
            label="Certificate"
            value={certificate}
            onValue={(value) => change({ certificate: value })}
            choices={names.map((name) => ({ value: name, label: name }))}
          />
          <Select
            label="For"
            value={recipe}
            onValue={(name) => {
              setRecipe(name);
              const { title: _, configuration: __, ...wishes } = recipeOf(name) ?? recipes.other;
              change(wishes);
            }}
            choices={Object.entries(recipes).map(([value, { title }]) => ({ value, label: title }))}
          />
        </div>
        <InstallerFiles files={choices.files} onFiles={(files) => change({ files })} />
        <InstallerOptions choices={choices} onChange={change} />
        <Checkbox
          label="Run it as root with sudo"
          hint="Without it, the job belongs to the user who runs the command."
          isChecked={choices.withSudo}
          onChecked={(withSudo) => change({ withSudo })}
        />
      </div>
      {needsKeys && !apiKey.scopes.includes('private_keys:read') && (
        <Notice tone="warning">
          This key may not read private keys: the installer will be refused private.key.
        </Notice>
      )}
      {isPlainRemote() && (
        <Notice tone="warning">
          The console was opened over plain HTTP. The installer refuses to send a key unencrypted; open the
          console by its https address to get a command that works.
        </Notice>
      )}
      {names.length === 0 && (
        <Notice>
          There is no certificate yet that this key could fetch. Make one first, then come back.
        </Notice>
      )}
      {isReady && (
        <>
          <h3>Run this on the machine</h3>
          <CopyBlock
            text={installerCommand({ ...choices, certificate }, rawKey)}
            label="The installer command"
          />
          {rawKey === undefined && (
            <p class="quiet">The installer will ask for the key: it was shown when it was made.</p>
          )}
        </>
      )}
      {isReady && configuration !== '' && (
        <>
          <h3>Then, in the configuration of {recipeOf(recipe)?.title}</h3>
          <CopyBlock text={configuration} label="The configuration" />
        </>
      )}
    </div>
  );
}

function isPlainRemote(): boolean {
  const isLoopback = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(location.hostname);
  return location.protocol === 'http:' && !isLoopback;
}
