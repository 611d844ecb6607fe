/** Creates an API key, shows it once, and offers the installer command that uses it. */
import { useState } from 'preact/hooks';
import { roles } from '../../../src/base/role.ts';
import { domainsIn } from '../certificates/certificate-checks.ts';
import { Button, ButtonLink } from '../components/button.tsx';
import { CopyBlock } from '../components/copy.tsx';
import { TextField } from '../components/field.tsx';
import { useFormErrors } from '../components/form-errors.tsx';
import { Notice } from '../components/notice.tsx';
import { Page, Section } from '../components/page.tsx';
import { Select } from '../components/select.tsx';
import type { CreatedApiKey } from '../data/administration-shapes.ts';
import { post } from '../data/api.ts';
import { useAction } from '../data/resource.ts';
import { useSession } from '../data/session.ts';
import { Allowlist } from '../forms/allowlist.tsx';
import { LabelsField, useOwnLabels } from '../forms/labels-field.tsx';
import { profilesIn } from '../forms/rights-draft.ts';
import { ScopeChoices, useUsualScopes } from '../forms/scope-choices.tsx';
import { InstallerBuilder } from '../installer/installer-builder.tsx';
import { usePlace } from '../router.ts';
import { labelsIn } from '../text/label-list.ts';

/** With these scopes, a key has certificates issued. */
const issuing = ['renewals:trigger', 'certificates:sign'];

export function NewApiKeyPage() {
  const [created, setCreated] = useState<CreatedApiKey>();
  if (created !== undefined) return <CreatedKey created={created} />;
  return (
    <Page
      title="Create API key"
      lead="For a machine that downloads certificates. Use one key per machine, so that you can revoke each one separately."
    >
      <KeyForm onCreated={setCreated} />
    </Page>
  );
}

function CreatedKey({ created }: { readonly created: CreatedApiKey }) {
  return (
    <Page
      title={`API key ${created.name}`}
      actions={
        <ButtonLink look="primary" href="/api-keys">
          Done
        </ButtonLink>
      }
    >
      <Notice tone="warning" title="The key is shown only once">
        Copy the key or the command below before you leave this page. The vault stores only a hash of the key.
      </Notice>
      <CopyBlock text={created.key} label="API key" />
      <Section title="Install on a machine">
        <InstallerBuilder apiKey={created} rawKey={created.key} />
      </Section>
    </Page>
  );
}

function KeyForm({ onCreated }: { readonly onCreated: (created: CreatedApiKey) => void }) {
  const [name, setName] = useState('');
  const [chosen, setChosen] = useState(useUsualScopes());
  const { query } = usePlace();
  const [certificates, setCertificates] = useState<readonly string[]>(() => query.getAll('certificate'));
  const [role, setRole] = useState('');
  const [networks, setNetworks] = useState('');
  const mine = useOwnLabels();
  const [labels, setLabels] = useState(mine);
  const [byLabel, setByLabel] = useState('');
  const [reach, setReach] = useState(mine);
  const own = useSession()?.profiles ?? [];
  const [profiles, setProfiles] = useState(own.join(', '));
  const [bound, setBound] = useState('');
  const [expires, setExpires] = useState('');
  const canIssue = role === 'operator' || (role !== 'admin' && chosen.some((one) => issuing.includes(one)));
  const creating = useAction(async () => {
    const expiry = expires === '' ? {} : { expires_at: new Date(expires).toISOString() };
    const allowed_networks = domainsIn(networks);
    const administers = role === '' ? {} : { role, ...(role !== 'admin' && { reach: labelsIn(reach) }) };
    const issues = canIssue ? { profiles: profilesIn(profiles) } : {};
    const binding = bound.trim() === '' ? {} : { client_certificate: bound.trim() };
    const allowlist = { certificates, certificate_labels: labelsIn(byLabel) };
    const rights = { scopes: chosen, ...allowlist, allowed_networks, ...administers, ...issues };
    const wanted = { name, labels: labelsIn(labels), ...rights, ...binding, ...expiry };
    onCreated(await post<CreatedApiKey>('/api-keys', wanted));
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
        hint="The machine or its service. Shown in the audit log."
        value={name}
        error={errorOf('name')}
        onValue={setName}
      />
      <ScopeChoices chosen={chosen} onChosen={setChosen} error={errorOf('scopes')} />
      <Allowlist chosen={certificates} onChosen={setCertificates} error={errorOf('certificates')} />
      <TextField
        label="Certificates by label (optional)"
        hint="Labels such as team=web, separated by commas. The key may also access certificates with any of them, including ones that get the label later."
        value={byLabel}
        error={errorOf('certificate_labels')}
        onValue={setByLabel}
      />
      <Select
        label="Administration"
        hint="For programs such as Ansible or Terraform. A client needs no role."
        value={role}
        choices={[
          { value: '', label: 'none: the key only reads, renews or signs' },
          ...roles.map((one) => ({ value: one, label: `${one}: as an administrator with this role` })),
        ]}
        error={errorOf('role')}
        onValue={setRole}
      />
      {(role === 'viewer' || role === 'operator') && (
        <TextField
          label={mine === '' ? 'Reach (optional)' : 'Reach'}
          hint="Labels such as team=web, separated by commas. The key then administers only what has one of them."
          value={reach}
          error={errorOf('reach')}
          onValue={setReach}
        />
      )}
      {canIssue && (
        <TextField
          label={own.length === 0 ? 'Profiles (optional)' : 'Profiles'}
          hint="Profiles of private CAs such as local-ca/web, separated by commas. The key then has certificates issued only with one of them."
          value={profiles}
          error={errorOf('profiles')}
          onValue={setProfiles}
        />
      )}
      <LabelsField
        hint="Such as team=web, separated by commas. They say who administers the key, and give it no access."
        value={labels}
        error={errorOf('labels')}
        onValue={setLabels}
      />
      <TextField
        label="Networks (optional)"
        hint="Accept the key only from these addresses or networks, such as 192.0.2.0/24 or 2001:db8::/32."
        value={networks}
        error={errorOf('allowed_networks')}
        onValue={setNetworks}
      />
      <TextField
        label="Client certificate (optional)"
        hint="The name of a certificate from a private CA. The key then works only over HTTPS connections that present it."
        value={bound}
        error={errorOf('client_certificate')}
        onValue={setBound}
      />
      <TextField
        label="Expires (optional)"
        hint="In your time zone. Without a date, the key is valid until you revoke it."
        type="datetime-local"
        value={expires}
        error={errorOf('expires_at')}
        onValue={setExpires}
      />
      {rest}
      <div class="form-buttons">
        <Button look="primary" type="submit" needs="operator" isBusy={creating.isBusy}>
          Create API key
        </Button>
        <ButtonLink look="quiet" href="/api-keys">
          Cancel
        </ButtonLink>
      </div>
    </form>
  );
}
