/** The renewals of a certificate, newest first. */
import { Empty } from '../../components/empty.tsx';
import { Problem } from '../../components/notice.tsx';
import { Skeleton } from '../../components/spinner.tsx';
import type { Resource } from '../../data/resource.ts';
import type { Renewal } from '../../data/shapes.ts';
import { RenewalSteps } from './renewal-steps.tsx';

export function CertificateRenewals({ renewals }: { readonly renewals: Resource<readonly Renewal[]> }) {
  const { data, error, reload } = renewals;
  if (!data) return error ? <Problem error={error} retry={reload} /> : <Skeleton />;
  if (data.length === 0) {
    return (
      <Empty title="No renewals yet">
        <p>Each renewal appears here with its steps, and with the CA’s error message if it failed.</p>
      </Empty>
    );
  }
  return (
    <ol class="trail">
      {data.map((renewal) => (
        <li key={renewal.id}>
          <RenewalSteps renewal={renewal} />
        </li>
      ))}
    </ol>
  );
}
