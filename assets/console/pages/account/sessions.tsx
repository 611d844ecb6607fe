/** The person's own sessions on every machine, and how to end them. */

import { Button } from '../../components/button.tsx';
import { Problem } from '../../components/notice.tsx';
import { Page } from '../../components/page.tsx';
import { Skeleton } from '../../components/spinner.tsx';
import { Badge } from '../../components/status.tsx';
import { Table } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { remove } from '../../data/api.ts';
import { useAction, useResource } from '../../data/resource.ts';
import { setSession } from '../../data/session.ts';
import { navigate } from '../../router.ts';

type SessionShape = {
  readonly id: number;
  readonly created_at: string;
  readonly last_used_at: string;
  readonly expires_at: string;
  readonly ip: string | null;
  readonly user_agent: string | null;
  readonly current: boolean;
};

export function SessionsPage() {
  const { data, error, reload } = useResource<readonly SessionShape[]>('/sessions');
  const ending = useAction(async ({ id, current }: SessionShape) => {
    await remove(`/sessions/${id}`);
    if (current) {
      navigate('/sign-in');
      setSession(null);
    } else await reload();
  });
  return (
    <Page
      title="Your sessions"
      lead="The browsers where you are signed in. Ending a session takes effect immediately."
    >
      {error && <Problem error={error} retry={reload} />}
      {ending.error && <Problem error={ending.error} />}
      {!data && !error && <Skeleton />}
      {data && (
        <Table
          caption="Your sessions"
          rows={data}
          keyOf={({ id }) => id}
          columns={[
            {
              title: 'Browser',
              cell: (session) => (
                <span class="pair">
                  <span title={session.user_agent ?? undefined}>{browserOf(session.user_agent)}</span>
                  {session.current && <Badge tone="accent">this browser</Badge>}
                </span>
              ),
            },
            { title: 'Address', cell: ({ ip }) => <span class="mono">{ip ?? '—'}</span> },
            { title: 'Signed in', cell: ({ created_at }) => <Time at={created_at} /> },
            { title: 'Last used', cell: ({ last_used_at }) => <Time at={last_used_at} /> },
            { title: 'Expires', cell: ({ expires_at }) => <Time at={expires_at} />, isExtra: true },
            {
              title: 'Action',
              cell: (session) => (
                <Button look="quiet" onClick={() => void ending.run(session)}>
                  {session.current ? 'Sign out' : 'End session'}
                </Button>
              ),
            },
          ]}
        />
      )}
    </Page>
  );
}

const browsers: readonly (readonly [RegExp, string])[] = [
  [/^certificate-vault\//, 'Command line'],
  [/Edg\//, 'Edge'],
  [/OPR\//, 'Opera'],
  [/Firefox\//, 'Firefox'],
  [/Chrom(e|ium)\//, 'Chrome'],
  [/Safari\//, 'Safari'],
];
const systems: readonly (readonly [RegExp, string])[] = [
  [/Android/, 'Android'],
  [/iPhone|iPad/, 'iOS'],
  [/Windows/, 'Windows'],
  [/Mac OS X/, 'macOS'],
  [/Linux/, 'Linux'],
];

/** A short name such as "Firefox on Linux", or the beginning of an unknown user agent. */
function browserOf(agent: string | null): string {
  if (agent === null) return 'unknown';
  const browser = browsers.find(([pattern]) => pattern.test(agent))?.[1];
  const system = systems.find(([pattern]) => pattern.test(agent))?.[1];
  return browser === undefined
    ? agent.slice(0, 40)
    : `${browser}${system === undefined ? '' : ` on ${system}`}`;
}
