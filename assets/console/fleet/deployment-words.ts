/** Deployments in plain words: why a job has its state. */
import type { Deployment } from '../data/shapes.ts';

/** Which step failed with the last line of its output, or why the installed version is not the current one. */
export function reasonOf({
  state,
  version,
  current_version: current,
  error,
  reload,
  verify,
}: Deployment): string | undefined {
  const failures = [
    error !== null && `Last run failed: ${error}`,
    reload?.result === 'failed' && withOutput('Reload failed', reload.output),
    verify?.result === 'failed' && withOutput('Verification failed', verify.output),
  ].filter((text) => text !== false);
  const failure = failures.length > 0 ? failures.join('. ') : undefined;
  if (state === 'silent') {
    return `No report when one was due${failure === undefined ? '' : `. Before that: ${failure}`}`;
  }
  if (failure !== undefined) return failure;
  if (state === 'outdated') return 'Not installed in time';
  if (current === null) return 'No version issued yet';
  if ((version ?? 0) < current) return 'Installs it at the next run';
  return undefined;
}

function withOutput(text: string, output: string | null): string {
  return output === null ? text : `${text}: ${output}`;
}

/** "2", "1, current: 2", "none, current: 2": the version that is installed, and the current one if it is another. */
export function versionText({
  version,
  current_version: current,
}: Pick<Deployment, 'version' | 'current_version'>): string {
  if (version === current || current === null) return String(version ?? '—');
  return `${version ?? 'none'}, current: ${current}`;
}
