/** The domains and the name of a new certificate. */
import { useState } from 'preact/hooks';
import { type CertificateDraft, domainsIn } from '../certificates/certificate-checks.ts';
import { TextArea, TextField } from '../components/field.tsx';
import { LabelsField } from './labels-field.tsx';

export type PartProps = {
  readonly draft: CertificateDraft;
  readonly onChange: (changes: Partial<CertificateDraft>) => void;
  /** The error of a field; `isEmpty` if the person has not typed anything yet. */
  readonly errorOf: (path: string, isEmpty?: boolean) => string | undefined;
};

export function CertificateNames({ draft, onChange, errorOf }: PartProps) {
  const [text, setText] = useState(() => draft.domains.join('\n'));
  const [hasOwnName, setOwnName] = useState(false);
  return (
    <fieldset class="card stack">
      <legend>Identity</legend>
      <TextArea
        label="Domains"
        hint="One per line: DNS names such as www.example.com, wildcards such as *.example.com, or IP addresses."
        rows={3}
        value={text}
        error={errorOf('domains', text === '')}
        onValue={(value) => {
          setText(value);
          const domains = domainsIn(value);
          onChange({ domains, ...(!hasOwnName && { name: suggestedName(domains[0] ?? '') }) });
        }}
      />
      <TextField
        label="Name"
        hint="Clients and API keys refer to the certificate by this name. You cannot change it later."
        value={draft.name}
        error={errorOf('name', draft.name === '')}
        onValue={(name) => {
          setOwnName(name !== '');
          onChange({ name });
        }}
      />
      <LabelsField
        hint="Such as team=web, separated by commas. API keys and people get access by them."
        value={draft.labels}
        error={errorOf('labels')}
        onValue={(labels) => onChange({ labels })}
      />
    </fieldset>
  );
}

/** The first domain, without the characters that a certificate name must not contain. */
export function suggestedName(domain: string): string {
  return domain
    .replace(/^\*\./, 'wildcard.')
    .replaceAll(/[^A-Za-z0-9._-]+/g, '-')
    .slice(0, 128);
}
