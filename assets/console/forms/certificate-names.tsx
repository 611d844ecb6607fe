/** What a new certificate is for, and what it is called. */
import { useState } from 'preact/hooks';
import { type CertificateDraft, domainsIn } from '../certificate-checks.ts';
import { TextArea, TextField } from '../components/field.tsx';

export type PartProps = {
  readonly draft: CertificateDraft;
  readonly onChange: (changes: Partial<CertificateDraft>) => void;
  /** What is wrong with a field; `isEmpty` where nothing was written yet. */
  readonly errorOf: (path: string, isEmpty?: boolean) => string | undefined;
};

export function CertificateNames({ draft, onChange, errorOf }: PartProps) {
  const [text, setText] = useState('');
  const [hasOwnName, setOwnName] = useState(false);
  return (
    <fieldset class="card stack">
      <legend>For</legend>
      <TextArea
        label="Domains"
        hint="One in each line: names such as www.example.com, wildcards such as *.example.com, or IP addresses."
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
        hint="What clients and API keys call it. It cannot be changed later."
        value={draft.name}
        error={errorOf('name', draft.name === '')}
        onValue={(name) => {
          setOwnName(name !== '');
          onChange({ name });
        }}
      />
    </fieldset>
  );
}

/** The first domain, with what a name must not have left out. */
function suggestedName(domain: string): string {
  return domain
    .replace(/^\*\./, 'wildcard.')
    .replaceAll(/[^A-Za-z0-9._-]+/g, '-')
    .slice(0, 128);
}
