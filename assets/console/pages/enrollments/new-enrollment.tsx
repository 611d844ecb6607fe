/** Creates an enrollment, shows its token once, and offers the commands that use it. */
import { useState } from 'preact/hooks';
import { domainsIn } from '../../certificates/certificate-checks.ts';
import { Button, ButtonLink } from '../../components/button.tsx';
import { CopyBlock } from '../../components/copy.tsx';
import { Checkbox, TextField } from '../../components/field.tsx';
import { useFormErrors } from '../../components/form-errors.tsx';
import { Notice } from '../../components/notice.tsx';
import { Page, Section } from '../../components/page.tsx';
import type { CreatedEnrollment } from '../../data/administration-shapes.ts';
import { post } from '../../data/api.ts';
import { useAction } from '../../data/resource.ts';
import { Allowlist } from '../../forms/allowlist.tsx';
import { LabelsField, useOwnLabels } from '../../forms/labels-field.tsx';
import { ScopeChoices, useUsualScopes } from '../../forms/scope-choices.tsx';
import { InstallerBuilder } from '../../installer/installer-builder.tsx';
import { storeTokenCommand, tokenFile } from '../../installer/shell-command.ts';
import { labelsIn } from '../../text/label-list.ts';
import { day } from '../../text/time.ts';

export function NewEnrollmentPage() {
  const [created, setCreated] = useState<CreatedEnrollment>();
  if (created !== undefined) return <Created created={created} />;
  return (
    <Page
      title="Create enrollment"
      lead="One token for many machines. Each exchanges it for an API key with its own name, which you can revoke separately."
    >
      <EnrollmentForm onCreated={setCreated} />
    </Page>
  );
}

function Created({ created }: { readonly created: CreatedEnrollment }) {
  return (
    <Page
      title={`Enrollment ${created.name}`}
      actions={
        <ButtonLink look="primary" href="/api-keys?tab=enrollments">
          Done
        </ButtonLink>
      }
    >
      <Notice tone="warning" title="The token is shown only once">
        Copy the token or the commands below before you leave this page. The vault stores only a hash of it.
      </Notice>
      <CopyBlock text={created.token} label="Enrollment token" />
      <Section title="Store the token on each machine">
        <CopyBlock text={storeTokenCommand(created.token)} label="Command that stores the token" />
      </Section>
      <Section title="Install on each machine">
        <InstallerBuilder apiKey={created} enrollment={tokenFile} />
      </Section>
    </Page>
  );
}

function EnrollmentForm({ onCreated }: { readonly onCreated: (created: CreatedEnrollment) => void }) {
  const [name, setName] = useState('');
  const [chosen, setChosen] = useState(useUsualScopes());
  const [certificates, setCertificates] = useState<readonly string[]>([]);
  const [byLabel, setByLabel] = useState('');
  const [uses, setUses] = useState('1');
  const [expires, setExpires] = useState(() => localMinute(Date.now() + day));
  const [networks, setNetworks] = useState('');
  const [isBound, setBound] = useState(false);
  const [labels, setLabels] = useState(useOwnLabels());
  const [keysExpire, setKeysExpire] = useState('');
  const creating = useAction(async () => {
    const wanted = {
      ...(name.trim() !== '' && { name: name.trim() }),
      ...{ scopes: chosen, certificates, certificate_labels: labelsIn(byLabel), labels: labelsIn(labels) },
      ...{ allowed_networks: domainsIn(networks), bind_address: isBound, uses: Number(uses) },
      ...(expires !== '' && { expires_at: new Date(expires).toISOString() }),
      ...(keysExpire !== '' && { key_expires_at: new Date(keysExpire).toISOString() }),
    };
    onCreated(await post<CreatedEnrollment>('/enrollments', wanted));
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
        label="Name (optional)"
        hint="Which machines it is for, such as rack-4. Shown in the audit log."
        value={name}
        error={errorOf('name')}
        onValue={setName}
      />
      <TextField
        label="Uses"
        hint="How many machines get an API key, up to 10000."
        type="number"
        value={uses}
        error={errorOf('uses')}
        onValue={setUses}
      />
      <TextField
        label="Expires"
        hint="Until when the token works, in your time zone."
        type="datetime-local"
        value={expires}
        error={errorOf('expires_at')}
        onValue={setExpires}
      />
      <Allowlist chosen={certificates} onChosen={setCertificates} error={errorOf('certificates')} />
      <TextField
        label="Certificates by label (optional)"
        hint="Labels such as team=web, separated by commas. The keys may also access certificates with any of them, including ones that get the label later."
        value={byLabel}
        error={errorOf('certificate_labels')}
        onValue={setByLabel}
      />
      <ScopeChoices chosen={chosen} onChosen={setChosen} error={errorOf('scopes')} />
      <TextField
        label="Networks (optional)"
        hint="Accept the token and the keys only from these addresses or networks, such as 192.0.2.0/24 or 2001:db8::/32."
        value={networks}
        error={errorOf('allowed_networks')}
        onValue={setNetworks}
      />
      <Checkbox
        label="Bind each key to the address of its machine"
        hint="The key then works only from the address that the machine enrolls from."
        isChecked={isBound}
        onChecked={setBound}
      />
      <LabelsField
        hint="Such as team=web, separated by commas. They say who administers the enrollment and its keys, and give them no access."
        value={labels}
        error={errorOf('labels')}
        onValue={setLabels}
      />
      <TextField
        label="Keys expire (optional)"
        hint="In your time zone. Without a date, each key is valid until you revoke it."
        type="datetime-local"
        value={keysExpire}
        error={errorOf('key_expires_at')}
        onValue={setKeysExpire}
      />
      {rest}
      <div class="form-buttons">
        <Button look="primary" type="submit" needs="operator" isBusy={creating.isBusy}>
          Create enrollment
        </Button>
        <ButtonLink look="quiet" href="/api-keys?tab=enrollments">
          Cancel
        </ButtonLink>
      </div>
    </form>
  );
}

/** The value of a `datetime-local` input, in the person's time zone. */
function localMinute(at: number): string {
  return new Date(at - new Date(at).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
