/** The tab Enrollments of the page API keys: tokens that machines exchange for keys of their own. */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { Empty } from '../../components/empty.tsx';
import { Menu } from '../../components/menu.tsx';
import { Problem } from '../../components/notice.tsx';
import { Skeleton } from '../../components/spinner.tsx';
import { Status } from '../../components/status.tsx';
import { type Column, Table } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import type { Enrollment } from '../../data/administration-shapes.ts';
import type { Resource } from '../../data/resource.ts';
import { DeleteEnrollmentDialog, RevokeEnrollmentDialog } from './enrollment-ending.tsx';
import { certificatesText, usesText } from './enrollment-words.ts';

type Opened = { readonly kind: 'revoke' | 'delete'; readonly enrollment: Enrollment };

export function EnrollmentsTab({
  enrollments: { data, error, reload },
  create,
}: {
  readonly enrollments: Resource<readonly Enrollment[]>;
  /** The button that creates one. */
  readonly create: ComponentChildren;
}) {
  const [opened, setOpened] = useState<Opened>();
  const close = () => setOpened(undefined);
  return (
    <>
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Skeleton />}
      {data?.length === 0 && (
        <Empty title="No enrollments yet" actions={create}>
          <p>
            An enrollment lets many machines get an API key each with one token, such as a rack of new servers
            or an image. Each key has the name of its machine, and can be revoked alone.
          </p>
        </Empty>
      )}
      {data && data.length > 0 && (
        <Table
          caption="Enrollments"
          rows={data.toReversed()}
          keyOf={({ id }) => id}
          columns={columns(setOpened)}
        />
      )}
      {opened?.kind === 'revoke' && (
        <RevokeEnrollmentDialog enrollment={opened.enrollment} onClose={close} onDone={reload} />
      )}
      {opened?.kind === 'delete' && (
        <DeleteEnrollmentDialog enrollment={opened.enrollment} onClose={close} onDone={reload} />
      )}
    </>
  );
}

function columns(onOpen: (opened: Opened) => void): Column<Enrollment>[] {
  return [
    {
      title: 'Name',
      cell: ({ id, name, prefix }) => (
        <>
          <a href={`/api-keys/enrollments/${id}`}>{name}</a>
          <div class="mono beneath whole">{prefix}…</div>
        </>
      ),
    },
    { title: 'State', cell: ({ state }) => <Status status={state} /> },
    { title: 'Uses', cell: (enrollment) => usesText(enrollment) },
    {
      title: 'Certificates',
      cell: (enrollment) => (
        <span>
          <span class="wrap">{certificatesText(enrollment)}</span>
          {enrollment.allowed_networks.length > 0 && (
            <div class="beneath wrap">only from {enrollment.allowed_networks.join(', ')}</div>
          )}
        </span>
      ),
    },
    {
      title: 'Last used',
      cell: ({ last_used_at }) => <Time at={last_used_at} none="never" />,
      isExtra: true,
    },
    { title: 'Expires', cell: ({ expires_at }) => <Time at={expires_at} /> },
    {
      title: 'Actions',
      cell: (enrollment) => (
        <Menu
          label={`Actions for ${enrollment.name}`}
          items={[
            {
              label: 'View audit log',
              href: `/audit-log?resource=${encodeURIComponent(`enrollment:${enrollment.id}`)}`,
            },
            // A token without uses left may have keys to revoke.
            ...(enrollment.state === 'revoked' && enrollment.uses === 0
              ? []
              : [
                  {
                    label: enrollment.state === 'revoked' ? 'Revoke API keys' : 'Revoke',
                    isDanger: true,
                    needs: 'operator' as const,
                    onSelect: () => onOpen({ kind: 'revoke' as const, enrollment }),
                  },
                ]),
            ...(enrollment.state === 'active'
              ? []
              : [
                  {
                    label: 'Delete',
                    isDanger: true,
                    needs: 'admin' as const,
                    onSelect: () => onOpen({ kind: 'delete' as const, enrollment }),
                  },
                ]),
          ]}
        >
          <span aria-hidden="true">⋯</span>
        </Menu>
      ),
    },
  ];
}
