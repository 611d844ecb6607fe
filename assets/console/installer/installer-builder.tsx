/** Builds the installer command for an API key from the options in a form. */
import { useState } from 'preact/hooks';
import { CopyBlock } from '../components/copy.tsx';
import { Checkbox } from '../components/field.tsx';
import { Notice, Problem } from '../components/notice.tsx';
import { Select } from '../components/select.tsx';
import { Skeleton } from '../components/spinner.tsx';
import type { About, OwnTls } from '../data/administration-shapes.ts';
import { useCertificates } from '../data/certificates.ts';
import { useResource } from '../data/resource.ts';
import type { ApiKey } from '../data/shapes.ts';
import { installerErrors } from './installer-checks.ts';
import { InstallerFiles } from './installer-files.tsx';
import { InstallerOptions } from './installer-options.tsx';
import { recipeOf, recipes } from './installer-recipes.ts';
import { InstallerTrust, trustFor } from './installer-trust.tsx';
import { hasPrivateKey, type InstallerChoices, installerCommand } from './shell-command.ts';

type BuilderProps = {
  /** The key, or the enrollment that creates one for each machine. */
  readonly apiKey: Pick<ApiKey, 'certificates' | 'scopes'>;
  /** Known only right after the key was created. */
  readonly rawKey?: string;
  /** The file with the token of the enrollment, which only root can read. */
  readonly enrollment?: string;
};

export function InstallerBuilder(props: BuilderProps) {
  const isAny = props.apiKey.certificates[0] === '*';
  const all = useCertificates(isAny);
  const about = useResource<About>('/about');
  const error = about.error ?? all.error;
  if (about.data === undefined || (isAny && all.data === undefined)) {
    const retry = () => Promise.all([about.reload(), all.reload()]);
    return error ? <Problem error={error} retry={retry} /> : <Skeleton lines={6} />;
  }
  const names = isAny ? (all.data?.items ?? []).map(({ name }) => name) : props.apiKey.certificates;
  return <Builder {...props} names={names} tls={about.data.tls} />;
}

function Builder({
  apiKey,
  rawKey,
  enrollment,
  names,
  tls,
}: BuilderProps & { readonly names: readonly string[]; readonly tls: OwnTls | null | undefined }) {
  const [recipe, setRecipe] = useState('nginx');
  const [choices, setChoices] = useState<InstallerChoices>(() => ({
    server: location.origin,
    ...trustFor(tls),
    caFile: '',
    certificate: '',
    schedule: '',
    withLocalKey: false,
    withSudo: true,
    ...recipes.nginx,
  }));
  const change = (changes: Partial<InstallerChoices>) => setChoices((now) => ({ ...now, ...changes }));
  const certificate = choices.certificate || (names[0] ?? '');
  const configuration = recipeOf(recipe)?.configuration ?? '';
  const errors = installerErrors(choices);
  const scope = choices.withLocalKey ? 'certificates:sign' : 'private_keys:read';
  const lacksScope = hasPrivateKey(choices.files) && !apiKey.scopes.includes(scope);
  const isReady = certificate !== '' && Object.keys(errors).length === 0;
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
            label="Server software"
            value={recipe}
            onValue={(name) => {
              setRecipe(name);
              const { title: _, configuration: __, ...defaults } = recipeOf(name) ?? recipes.other;
              change(defaults);
            }}
            choices={Object.entries(recipes).map(([value, { title }]) => ({ value, label: title }))}
          />
        </div>
        <InstallerFiles files={choices.files} error={errors.files} onFiles={(files) => change({ files })} />
        <InstallerOptions choices={choices} errors={errors} onChange={change} />
        {location.protocol === 'https:' && (
          <InstallerTrust tls={tls} choices={choices} errors={errors} onChange={change} />
        )}
        <Checkbox
          label="Generate the private key on the machine"
          hint="The vault never has it: the machine sends certificate signing requests. For one machine per certificate."
          isChecked={choices.withLocalKey}
          onChecked={(withLocalKey) => change({ withLocalKey })}
        />
        {enrollment === undefined && (
          <Checkbox
            label="Run as root with sudo"
            hint="Otherwise the cron job runs as the user who runs the command."
            isChecked={choices.withSudo}
            onChecked={(withSudo) => change({ withSudo })}
          />
        )}
      </div>
      {lacksScope && (
        <Notice tone="warning">
          {choices.withLocalKey
            ? 'The API key has no permission to have requests signed (certificates:sign), so the installer cannot get a certificate for a key of the machine.'
            : 'The API key has no permission to read private keys, so the installer cannot download files with a private key.'}
        </Notice>
      )}
      {isPlainRemote() && (
        <Notice tone="warning" title="The console is open over plain HTTP">
          Over HTTP, an attacker on the network could change the script that this command runs as root, and
          read the key. The installer refuses to send the key. Open the console over HTTPS to get a working
          command.
        </Notice>
      )}
      {names.length === 0 && (
        <Notice>
          No certificates yet that this key can download. Create a certificate, then come back to this page.
        </Notice>
      )}
      {certificate !== '' && !isReady && <p class="quiet">Fix the errors above to see the command.</p>}
      {isReady && (
        <>
          <h3>Run this on the machine</h3>
          <CopyBlock
            text={installerCommand({ ...choices, certificate }, rawKey, enrollment)}
            label="Installer command"
          />
          {rawKey === undefined && enrollment === undefined && (
            <p class="quiet">The installer asks for the API key, which was shown when it was created.</p>
          )}
          {enrollment !== undefined && (
            <p class="quiet">
              Then delete <span class="mono">{enrollment}</span>. The machine no longer needs it.
            </p>
          )}
        </>
      )}
      {isReady && configuration !== '' && (
        <>
          <h3>Then configure {recipeOf(recipe)?.title}</h3>
          <CopyBlock text={configuration} label="Configuration" />
        </>
      )}
    </div>
  );
}

function isPlainRemote(): boolean {
  const isLoopback = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(location.hostname);
  return location.protocol === 'http:' && !isLoopback;
}
