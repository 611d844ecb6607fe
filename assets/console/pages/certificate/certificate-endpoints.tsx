/** The endpoints of a certificate: what is really served, next to the versions that the vault has. */
import { useState } from 'preact/hooks';
import { servedLives } from '../../certificates/served-lives.ts';
import { Button } from '../../components/button.tsx';
import { Problem } from '../../components/notice.tsx';
import { Section } from '../../components/page.tsx';
import { Skeleton } from '../../components/spinner.tsx';
import { useEndpoints } from '../../data/endpoints.ts';
import type { Certificate } from '../../data/shapes.ts';
import { EndpointList } from '../../fleet/endpoint-list.tsx';
import { type Suggestion, suggestionsFor } from '../../fleet/endpoint-suggestions.ts';
import { EndpointDialog } from '../../forms/endpoint-dialog.tsx';
import type { EndpointDraft } from '../../forms/endpoint-draft.ts';
import { useNow } from '../../text/clock.ts';
import { ServedTimeline } from '../timeline.tsx';

/** A certificate may have a hundred names. */
const maxSuggestions = 6;

export function CertificateEndpoints({ certificate }: { readonly certificate: Certificate }) {
  const { name, domains } = certificate;
  const own = useEndpoints(`/endpoints?certificate=${encodeURIComponent(name)}&limit=1000`);
  const { data } = own;
  const possible = data?.isWhole ? suggestionsFor(domains, data.items) : [];
  // An address may have an endpoint without a certificate, or with another one. Nothing is suggested before the last
  // page, because a suggestion would disappear when a later page has its address.
  const all = useEndpoints(possible.length > 0 ? '/endpoints?limit=1000' : undefined);
  const [start, setStart] = useState<Partial<EndpointDraft>>();
  const error = own.error ?? all.error;
  const reload = () => Promise.all([own.reload(), all.reload()]);
  const known = [...(data?.items ?? []), ...(all.data?.items ?? [])];
  const suggestions = all.data?.isWhole ? suggestionsFor(domains, known).slice(0, maxSuggestions) : [];
  return (
    <Section
      title="Endpoints"
      actions={
        <Button needs="operator" onClick={() => setStart({ certificate: name })}>
          Add endpoint
        </Button>
      }
    >
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Skeleton />}
      {data && (
        <div class="stack">
          {data.items.length === 0 ? (
            <p class="quiet">
              No endpoints yet. Add the addresses where this certificate is served, and the vault checks that
              each renewal arrives there.
            </p>
          ) : (
            <div>
              <Picture certificate={certificate} endpoints={data.items} />
              <EndpointList endpoints={data} ofOne />
            </div>
          )}
          {suggestions.length > 0 && (
            <Suggestions
              suggestions={suggestions}
              onChosen={({ address, starttls }) =>
                setStart({ certificate: name, address, starttls: starttls ?? '' })
              }
            />
          )}
        </div>
      )}
      {start && <EndpointDialog start={start} onClose={() => setStart(undefined)} onDone={own.reload} />}
    </Section>
  );
}

function Picture({
  certificate,
  endpoints,
}: {
  readonly certificate: Certificate;
  readonly endpoints: Parameters<typeof servedLives>[1];
}) {
  const now = useNow();
  return <ServedTimeline lives={servedLives(certificate, endpoints, now)} />;
}

function Suggestions({
  suggestions,
  onChosen,
}: {
  readonly suggestions: readonly Suggestion[];
  readonly onChosen: (suggestion: Suggestion) => void;
}) {
  return (
    <div class="suggestions">
      <span class="quiet">Suggested:</span>
      {suggestions.map((suggestion) => (
        <Button key={suggestion.address} needs="operator" onClick={() => onChosen(suggestion)}>
          Add {suggestion.address}
        </Button>
      ))}
    </div>
  );
}
