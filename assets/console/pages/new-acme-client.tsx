/** Creates an ACME client, shows its key once, and offers the lines that set up a program. */
import { useState } from 'preact/hooks';
import { domainsIn } from '../certificates/certificate-checks.ts';
import { Button, ButtonLink } from '../components/button.tsx';
import { Checkbox, TextArea, TextField } from '../components/field.tsx';
import { useFormErrors } from '../components/form-errors.tsx';
import { Page } from '../components/page.tsx';
import type { CreatedAcmeClient, Issuer } from '../data/administration-shapes.ts';
import { post } from '../data/api.ts';
import { useAction, useList } from '../data/resource.ts';
import { AcmeClientKey } from '../forms/acme-client-key.tsx';

export function NewAcmeClientPage() {
  const [created, setCreated] = useState<CreatedAcmeClient>();
  if (created !== undefined) {
    return (
      <Page
        title={`ACME client ${created.name}`}
        actions={
          <ButtonLink look="primary" href="/acme-clients">
            Done
          </ButtonLink>
        }
      >
        <AcmeClientKey created={created} />
      </Page>
    );
  }
  return (
    <Page
      title="Create ACME client"
      lead="For a program that orders its certificates by ACME, such as Caddy or certbot. Use one client per machine, so that you can revoke each one separately."
    >
      <ClientForm onCreated={setCreated} />
    </Page>
  );
}

const validations = [
  { name: 'http-01', hint: 'The vault fetches a file from port 80 of each name.' },
  { name: 'tls-alpn-01', hint: 'The vault connects to port 443 of each name.' },
  { name: 'dns-01', hint: 'The vault looks up a TXT record of each name.' },
] as const;

function ClientForm({ onCreated }: { readonly onCreated: (created: CreatedAcmeClient) => void }) {
  const [name, setName] = useState('');
  const [domains, setDomains] = useState('');
  const [issuers, setIssuers] = useState<readonly string[]>(['local-ca']);
  const [validation, setValidation] = useState<readonly string[]>([]);
  const [networks, setNetworks] = useState('');
  const [rate, setRate] = useState('');
  const [expires, setExpires] = useState('');
  const known = useList<Issuer>('/issuers');
  const creating = useAction(async () => {
    const wanted = {
      ...{ name, domains: domainsIn(domains), issuers, validation, allowed_networks: domainsIn(networks) },
      ...(rate !== '' && { rate: Number(rate) }),
      ...(expires !== '' && { expires_at: new Date(expires).toISOString() }),
    };
    onCreated(await post<CreatedAcmeClient>('/acme-clients', wanted));
  });
  const { form, errorOf, rest } = useFormErrors(creating.error);
  return (
    <form
      ref={form}
      class="form stack"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        void creating.run();
      }}
    >
      <TextField
        label="Name"
        hint="The program or its machine. Shown in the audit log."
        value={name}
        error={errorOf('name')}
        onValue={setName}
      />
      <TextArea
        label="Names it may order"
        hint="One per line: www.example.com, *.example.com for every name below example.com, * for any DNS name, or a network such as 10.0.0.0/8 for IP addresses."
        rows={3}
        value={domains}
        error={errorOf('domains')}
        onValue={setDomains}
      />
      <Choices
        legend="Issuers"
        error={errorOf('issuers')}
        choices={(known.data ?? []).map((issuer) => ({
          name: issuer.name,
          hint: issuer.type === 'acme' ? 'A public CA, at 50 orders per hour by default.' : 'A private CA.',
        }))}
        chosen={issuers}
        onChosen={setIssuers}
      />
      <Choices
        legend="Validate names by (optional)"
        error={errorOf('validation')}
        choices={validations}
        chosen={validation}
        onChosen={setValidation}
      />
      <TextField
        label="Networks (optional)"
        hint="Accept the client only from these addresses or networks, such as 192.0.2.0/24 or 2001:db8::/32."
        value={networks}
        error={errorOf('allowed_networks')}
        onValue={setNetworks}
      />
      <TextField
        label="Orders per hour (optional)"
        type="number"
        value={rate}
        error={errorOf('rate')}
        onValue={setRate}
      />
      <TextField
        label="Expires (optional)"
        hint="In your time zone. Without a date, the client is valid until you revoke it."
        type="datetime-local"
        value={expires}
        error={errorOf('expires_at')}
        onValue={setExpires}
      />
      {rest}
      <div class="form-buttons">
        <Button look="primary" type="submit" needs="admin" isBusy={creating.isBusy}>
          Create ACME client
        </Button>
        <ButtonLink look="quiet" href="/acme-clients">
          Cancel
        </ButtonLink>
      </div>
    </form>
  );
}

function Choices({
  legend,
  error,
  choices,
  chosen,
  onChosen,
}: {
  readonly legend: string;
  readonly error: string | undefined;
  readonly choices: readonly { readonly name: string; readonly hint: string }[];
  readonly chosen: readonly string[];
  readonly onChosen: (chosen: readonly string[]) => void;
}) {
  return (
    <fieldset class="card stack">
      <legend>{legend}</legend>
      {choices.map(({ name, hint }) => (
        <Checkbox
          key={name}
          label={name}
          hint={hint}
          isChecked={chosen.includes(name)}
          onChecked={(isChecked) =>
            onChosen([...chosen.filter((other) => other !== name), ...(isChecked ? [name] : [])])
          }
        />
      ))}
      {error && (
        <p class="field-error" role="alert">
          {error}
        </p>
      )}
    </fieldset>
  );
}
