/** The lines that set up a program as an ACME client, in a tab for each program. */
import { useState } from 'preact/hooks';
import { acmeRecipes, acmeRootFile, exampleDomain } from '../../../src/base/acme-recipes.ts';
import { CopyBlock } from '../components/copy.tsx';
import { Select } from '../components/select.tsx';
import { Tabs } from '../components/tabs.tsx';
import type { AcmeClient } from '../data/administration-shapes.ts';

export function AcmeSetup({
  client: { kid, domains },
  directories,
  hmacKey,
}: {
  readonly client: Pick<AcmeClient, 'kid' | 'domains'>;
  readonly directories: readonly { readonly issuer: string; readonly url: string }[];
  readonly hmacKey: string;
}) {
  const [issuer, setIssuer] = useState(directories[0]?.issuer ?? '');
  const directory = directories.find((one) => one.issuer === issuer)?.url ?? '';
  const values = { directory, kid, hmacKey, domain: exampleDomain(domains) };
  return (
    <div class="stack">
      {directories.length > 1 && (
        <Select
          label="Issuer"
          value={issuer}
          onValue={setIssuer}
          choices={directories.map((one) => ({ value: one.issuer, label: one.issuer }))}
        />
      )}
      <p class="quiet">
        The program must trust the HTTPS certificate of the vault: copy the root from{' '}
        <a href="/client/ca.crt">/client/ca.crt</a> to {acmeRootFile}, or trust it on the whole machine.
      </p>
      <Tabs
        label="Programs"
        tabs={Object.entries(acmeRecipes).map(([id, { title, place, lines }]) => ({
          id,
          label: title,
          content: () => (
            <>
              <p class="quiet small">{place}</p>
              <CopyBlock text={lines(values)} label={`Lines for ${title}`} />
            </>
          ),
        }))}
      />
    </div>
  );
}
