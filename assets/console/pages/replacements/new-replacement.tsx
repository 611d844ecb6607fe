/** Starts an emergency replacement, after a preview of who is affected. */
import { useState } from 'preact/hooks';
import {
  certificateCount,
  type ReplacementDraft,
  reasonTexts,
  requestOf,
  type Selection,
  selectsAny,
  usualReason,
} from '../../certificates/replacement-words.ts';
import { Button, ButtonLink } from '../../components/button.tsx';
import { ConfirmDialog } from '../../components/dialog.tsx';
import { TextField } from '../../components/field.tsx';
import { useFormErrors } from '../../components/form-errors.tsx';
import { Problem } from '../../components/notice.tsx';
import { Page } from '../../components/page.tsx';
import { Select } from '../../components/select.tsx';
import type { Issuer } from '../../data/administration-shapes.ts';
import { post } from '../../data/api.ts';
import type { Replacement, ReplacementPreview, ReplacementReason } from '../../data/replacement-shapes.ts';
import { useAction, useList } from '../../data/resource.ts';
import { navigate, usePlace } from '../../router.ts';
import { AffectedCertificates } from './affected-certificates.tsx';

export function NewReplacementPage() {
  const { query } = usePlace();
  const [draft, setDraft] = useState<ReplacementDraft>(() => ({
    selection: 'certificate',
    certificate: query.get('certificate') ?? '',
    issuer: '',
    labels: '',
    reason: usualReason('certificate'),
    deadline: '',
  }));
  const [previewed, setPreviewed] = useState<{ readonly of: string; readonly preview: ReplacementPreview }>();
  const [isConfirming, setConfirming] = useState(false);
  const issuers = useList<Issuer>('/issuers');
  const request = requestOf(draft);
  const previewing = useAction(async () => {
    const preview = await post<ReplacementPreview>('/replacements/preview', request);
    setPreviewed({ of: JSON.stringify(request), preview });
  });
  // A change of the form discards the preview.
  const preview = previewed?.of === JSON.stringify(request) ? previewed.preview : undefined;
  const change = (changes: Partial<ReplacementDraft>) => {
    previewing.forget();
    setDraft((before) => ({ ...before, ...changes }));
  };
  const { form, errorOf, rest } = useFormErrors(previewing.error);
  return (
    <Page
      title="Replace certificates"
      lead="For emergencies. The vault reissues the certificates, and revokes the old versions once the new ones are live."
    >
      <form
        ref={form}
        class="form stack"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          if (selectsAny(draft)) void previewing.run();
        }}
      >
        <Select
          label="Replace"
          value={draft.selection}
          choices={[
            { value: 'certificate', label: 'One certificate' },
            { value: 'issuer', label: 'All certificates of an issuer' },
            { value: 'labels', label: 'All certificates with labels' },
          ]}
          onValue={(value) => {
            const selection = value as Selection;
            change({ selection, reason: usualReason(selection) });
          }}
        />
        {draft.selection === 'certificate' && (
          <TextField
            label="Certificate"
            hint="The name of the certificate."
            value={draft.certificate}
            error={errorOf('certificate')}
            onValue={(certificate) => change({ certificate })}
          />
        )}
        {draft.selection === 'issuer' && (
          <>
            {issuers.error && <Problem error={issuers.error} retry={issuers.reload} />}
            <Select
              label="Issuer"
              hint="Certificates whose current version it issued, even if another issuer renews them now."
              value={draft.issuer}
              choices={[
                { value: '', label: 'Select an issuer' },
                ...(issuers.data ?? []).map(({ name }) => ({ value: name, label: name })),
              ]}
              error={errorOf('issuer')}
              onValue={(issuer) => change({ issuer })}
            />
          </>
        )}
        {draft.selection === 'labels' && (
          <TextField
            label="Labels"
            hint="Such as team=web, separated by commas. Selects certificates that have all of them."
            value={draft.labels}
            error={errorOf('labels')}
            onValue={(labels) => change({ labels })}
          />
        )}
        <Select
          label="Reason"
          hint={
            draft.reason === 'key-compromised'
              ? 'Issues new private keys, and revokes every version with the old key.'
              : undefined
          }
          value={draft.reason}
          choices={Object.entries(reasonTexts).map(([value, label]) => ({ value, label }))}
          error={errorOf('reason')}
          onValue={(reason) => change({ reason: reason as ReplacementReason })}
        />
        <TextField
          label="Deadline (optional)"
          hint={`Such as 4h or 2d. Old versions are then revoked even if the new ones are not live everywhere; 0 revokes as soon as the new version is issued. By default ${draft.reason === 'key-compromised' ? '1h' : '24h'}.`}
          value={draft.deadline}
          error={errorOf('deadline')}
          onValue={(deadline) => change({ deadline })}
        />
        {rest}
        <div class="form-buttons">
          <Button
            look={preview ? 'plain' : 'primary'}
            type="submit"
            isBusy={previewing.isBusy}
            disabled={!selectsAny(draft)}
          >
            Preview
          </Button>
          <ButtonLink look="quiet" href="/replacements">
            Cancel
          </ButtonLink>
        </div>
      </form>
      {preview && (
        <AffectedCertificates preview={preview}>
          <Button look="danger" needs="operator" onClick={() => setConfirming(true)}>
            Replace {certificateCount(preview.replaced)}
          </Button>
        </AffectedCertificates>
      )}
      {preview && isConfirming && (
        <ConfirmDialog
          title={`Replace ${certificateCount(preview.replaced)}?`}
          action="Replace"
          onClose={() => setConfirming(false)}
          onSubmit={async () => {
            const { id } = await post<Replacement>('/replacements', request);
            navigate(`/replacements/${id}`);
          }}
        >
          <p>
            The vault renews each certificate now. It revokes the old version once the new one is live, or at
            the deadline; a revocation cannot be undone.
          </p>
        </ConfirmDialog>
      )}
    </Page>
  );
}
