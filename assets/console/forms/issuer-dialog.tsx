/** Adds or edits an ACME CA. Shows the CA's terms of service once the vault has read them from the directory. */
import { useState } from 'preact/hooks';
import { FormDialog } from '../components/dialog.tsx';
import { Checkbox, TextField } from '../components/field.tsx';
import { Notice } from '../components/notice.tsx';
import { WebLink } from '../components/web-link.tsx';
import type { Issuer } from '../data/administration-shapes.ts';
import { ApiError, patch, post } from '../data/api.ts';
import { blankIssuer, type IssuerDraft, issuerChanges, issuerDraft, newIssuer } from './issuer-draft.ts';
import { IssuerDirectory, IssuerOptions, knownDirectories } from './issuer-fields.tsx';

const letsEncrypt = { ...blankIssuer, name: 'letsencrypt', directory_url: knownDirectories.letsencrypt };

export function IssuerDialog({
  issuer,
  others,
  onClose,
  onDone,
}: {
  /** The issuer to edit; undefined to add one. */
  readonly issuer?: Issuer;
  /** The other issuers. */
  readonly others: readonly Issuer[];
  readonly onClose: () => void;
  readonly onDone: () => Promise<void>;
}) {
  const [before] = useState(() => {
    if (issuer !== undefined) return issuerDraft(issuer);
    return others.some(({ name }) => name === letsEncrypt.name) ? blankIssuer : letsEncrypt;
  });
  const [draft, setDraft] = useState(before);
  const [terms, setTerms] = useState<string>();
  const [accepts, setAccepts] = useState(false);
  const change = (changes: Partial<IssuerDraft>) => setDraft((now) => ({ ...now, ...changes }));
  const submit = async () => {
    try {
      if (issuer === undefined) await post('/issuers', { ...newIssuer(draft), accept_terms: accepts });
      else {
        const changes = issuerChanges(before, draft);
        await patch(`/issuers/${encodeURIComponent(issuer.name)}`, { ...changes, accept_terms: accepts });
      }
    } catch (error) {
      const found = error instanceof ApiError ? error.field('accept_terms') : undefined;
      if (found === undefined) throw error;
      setTerms(found);
      throw new ApiError(400, 'terms', 'Accept the CA’s terms of service to continue.');
    }
    await onDone();
  };
  return (
    <FormDialog
      title={issuer === undefined ? 'Add ACME CA' : `Edit ${issuer.name}`}
      action={issuer === undefined ? (terms !== undefined && !accepts ? 'Accept and add' : 'Add') : 'Save'}
      isReady={terms === undefined || accepts}
      onClose={onClose}
      onSubmit={submit}
    >
      {(errorOf) => (
        <>
          {issuer === undefined && <IssuerDirectory draft={draft} onChange={change} errorOf={errorOf} />}
          {issuer !== undefined && (
            <TextField
              label="Directory"
              type="url"
              hint="With a new directory, the vault registers a new account."
              value={draft.directory_url}
              error={errorOf('directory_url')}
              onValue={(directory_url) => change({ directory_url })}
            />
          )}
          <TextField
            label="Email"
            type="email"
            hint="Optional. The CA can send notices to this address."
            value={draft.email}
            error={errorOf('email')}
            onValue={(email) => change({ email })}
          />
          <IssuerOptions draft={draft} onChange={change} errorOf={errorOf} isNew={issuer === undefined} />
          {terms !== undefined && (
            <Notice title="Terms of service">
              <p>
                <WebLink to={terms} />
              </p>
              <Checkbox label="I accept the terms of service" isChecked={accepts} onChecked={setAccepts} />
            </Notice>
          )}
        </>
      )}
    </FormDialog>
  );
}
