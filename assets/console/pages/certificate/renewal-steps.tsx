/** One renewal: its steps as they happen, and the CA's error message if it failed. */
import { useEffect, useState } from 'preact/hooks';
import { Facts } from '../../components/page.tsx';
import { Spinner } from '../../components/spinner.tsx';
import { Status } from '../../components/status.tsx';
import { StepList } from '../../components/step-list.tsx';
import { Time } from '../../components/time.tsx';
import type { Renewal } from '../../data/shapes.ts';
import { durationText } from '../../text/time.ts';

export function RenewalSteps({ renewal }: { readonly renewal: Renewal }) {
  const { status, steps, error, version, started_at: started, finished_at: finished } = renewal;
  const isOpen = status === 'queued' || status === 'running';
  const end = useSeconds(isOpen) ?? (finished === null ? undefined : Date.parse(finished));
  return (
    <div class="renewal" aria-live="polite">
      <div class="pair">
        <h2>Renewal {renewal.id}</h2>
        <Status status={status} />
        {started !== null && end !== undefined && end - Date.parse(started) >= (isOpen ? 1000 : 0) && (
          <span class="quiet small">{durationText(Math.max(0, end - Date.parse(started)))}</span>
        )}
      </div>
      {steps.length > 0 && <StepList steps={steps} />}
      {status === 'queued' && <Spinner label="Waiting to start" />}
      {status === 'running' && <Spinner label="In progress" />}
      {status === 'failed' && <blockquote class="words words-bad">{error}</blockquote>}
      {status === 'succeeded' && version !== null && <p>Issued version {version}.</p>}
      <Facts
        facts={[
          ['Requested', <Time key="requested" at={renewal.requested_at} show="both" />],
          ['Requested by', renewal.requested_by],
          ['Issuer', renewal.issuer],
        ]}
      />
    </div>
  );
}

/** The current time, updated every second while `isOn`. */
function useSeconds(isOn: boolean): number | undefined {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (!isOn) return;
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [isOn]);
  return isOn ? now : undefined;
}
