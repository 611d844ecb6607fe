/**
 * The form that creates a certificate. It then opens the page of the certificate, which shows the order in progress.
 */
import { useState } from 'preact/hooks';
import { type CertificateDraft, checkCertificate } from '../certificates/certificate-checks.ts';
import { Button, ButtonLink } from '../components/button.tsx';
import { useFormErrors } from '../components/form-errors.tsx';
import { Notice, Problem } from '../components/notice.tsx';
import { Page } from '../components/page.tsx';
import { Skeleton } from '../components/spinner.tsx';
import { Time } from '../components/time.tsx';
import type { DnsProvider, Issuer } from '../data/administration-shapes.ts';
import { messagesAt, post } from '../data/api.ts';
import { useCertificateNamed } from '../data/existing-certificate.ts';
import { useAction, useList } from '../data/resource.ts';
import type { Certificate } from '../data/shapes.ts';
import { CertificateNames, suggestedName } from '../forms/certificate-names.tsx';
import { CertificateOptions } from '../forms/certificate-options.tsx';
import { ChallengeNotes } from '../forms/challenge-notes.tsx';
import { useOwnLabels } from '../forms/labels-field.tsx';
import { useOwnProfile } from '../forms/profile-field.tsx';
import { navigate, usePlace } from '../router.ts';
import { labelsIn } from '../text/label-list.ts';

const blank: CertificateDraft = {
  name: '',
  domains: [],
  issuer: 'local-ca',
  fallbackIssuer: '',
  keyType: 'ec256',
  lifetime: '',
  usage: '',
  profile: '',
  challenge: '',
  reusesKey: false,
  csr: '',
  labels: '',
};

export function NewCertificatePage() {
  const issuers = useList<Issuer>('/issuers');
  const providers = useList<DnsProvider>('/dns-providers');
  const error = issuers.error ?? providers.error;
  return (
    <Page
      title="Create certificate"
      lead="The vault generates the key, or takes a CSR from the client, gets the certificate issued, and renews it."
      actions={
        <ButtonLink needs="operator" href="/import">
          Import certificate
        </ButtonLink>
      }
    >
      {error && <Problem error={error} retry={() => Promise.all([issuers.reload(), providers.reload()])} />}
      {!issuers.data && !error && <Skeleton lines={8} />}
      {issuers.data && <CertificateForm issuers={issuers.data} providers={providers.data ?? []} />}
    </Page>
  );
}

function CertificateForm({
  issuers,
  providers,
}: {
  readonly issuers: readonly Issuer[];
  readonly providers: readonly DnsProvider[];
}) {
  const own = useOwnLabels();
  const profile = useOwnProfile();
  // The page of a scan fills in the names of a certificate that it found.
  const domains: readonly string[] = usePlace().query.get('domains')?.split(',').filter(Boolean) ?? [];
  const name = suggestedName(domains[0] ?? '');
  const [draft, setDraft] = useState({ ...blank, name, domains, labels: own, ...profile });
  const [hasTried, setTried] = useState(false);
  const issuer = issuers.find(({ name }) => name === draft.issuer);
  const isAcme = issuer?.type === 'acme';
  const taken = useCertificateNamed(draft.name) && `a certificate named "${draft.name}" already exists`;
  const checks = { ...checkCertificate(draft, isAcme), ...(taken !== undefined && { name: taken }) };
  const creating = useAction(async () => {
    await post<{ readonly certificate: Certificate }>('/certificates', bodyOf(draft));
    navigate(`/certificates/${encodeURIComponent(draft.name)}`);
  });
  const answered = useFormErrors(creating.error);
  const change = (changes: Partial<CertificateDraft>) => {
    creating.forget();
    setDraft((now) => ({ ...now, ...changes }));
  };
  /** Errors about empty fields are shown only after the first attempt to submit. */
  const errorOf = (path: string, isEmpty = false) => {
    const own = messagesAt(checks, path);
    if (own !== undefined && (hasTried || !isEmpty)) return own;
    if (path === 'name' && creating.error?.code === 'certificate_exists') return creating.error.message;
    return answered.errorOf(path);
  };
  return (
    <form
      ref={answered.form}
      class="form stack"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        setTried(true);
        if (Object.keys(checks).length > 0) focusFirstError(event.currentTarget);
        else void creating.run();
      }}
    >
      <CertificateNames draft={draft} onChange={change} errorOf={errorOf} />
      <CertificateOptions
        draft={draft}
        issuers={issuers}
        isAcme={isAcme}
        onChange={change}
        errorOf={errorOf}
      />
      {issuer?.paused_until != null && (
        <Notice tone="warning" title={`${issuer.name} is paused`}>
          The order waits until the pause ends <Time at={issuer.paused_until} show="both" />.{' '}
          {issuer.pause_reason}
        </Notice>
      )}
      <ChallengeNotes draft={draft} isAcme={isAcme} providers={providers} />
      {creating.error?.code !== 'certificate_exists' && answered.rest}
      <div class="form-buttons">
        <Button look="primary" type="submit" needs="operator" isBusy={creating.isBusy}>
          Create certificate
        </Button>
        <ButtonLink look="quiet" href="/certificates">
          Cancel
        </ButtonLink>
      </div>
    </form>
  );
}

/** Waits for the next frame, because the fields are marked as invalid when it renders. */
function focusFirstError(form: HTMLFormElement): void {
  requestAnimationFrame(() => form.querySelector<HTMLElement>('[aria-invalid]')?.focus());
}

function bodyOf(draft: CertificateDraft) {
  const { name, domains, issuer, fallbackIssuer, lifetime, usage, profile, challenge } = draft;
  const { csr, keyType, reusesKey } = draft;
  const labels = labelsIn(draft.labels);
  return {
    name,
    // The request names them.
    ...(csr === '' || domains.length > 0 ? { domains } : {}),
    issuer,
    ...(csr === '' ? { key_type: keyType, reuse_key: reusesKey } : { csr }),
    ...(fallbackIssuer !== '' && { fallback_issuer: fallbackIssuer }),
    ...(lifetime !== '' && { lifetime }),
    ...(usage !== '' && { usage }),
    ...(profile !== '' && { profile }),
    ...(challenge !== '' && { challenge }),
    ...(labels.length > 0 && { labels }),
  };
}
