/** Notification channels, their state, and the log of deliveries. */
import { useState } from 'preact/hooks';
import { Button } from '../components/button.tsx';
import { CopyBlock } from '../components/copy.tsx';
import { ConfirmDialog, Dialog } from '../components/dialog.tsx';
import { Empty } from '../components/empty.tsx';
import { Notice, Problem } from '../components/notice.tsx';
import { Page } from '../components/page.tsx';
import { Skeleton, Spinner } from '../components/spinner.tsx';
import { Status } from '../components/status.tsx';
import { Table } from '../components/table.tsx';
import type { ChangedChannel, NotificationChannel } from '../data/administration-shapes.ts';
import { post, remove } from '../data/api.ts';
import { useAction, useList } from '../data/resource.ts';
import { NotificationDialog } from '../forms/notification-dialog.tsx';
import { NotificationLog } from './notification-log.tsx';

type Opened =
  | { readonly kind: 'add' }
  | { readonly kind: 'change' | 'test' | 'remove'; readonly channel: NotificationChannel };

export function NotificationsPage() {
  const { data, error, reload } = useList<NotificationChannel>('/notification-channels');
  const [opened, setOpened] = useState<Opened>();
  const [secret, setSecret] = useState<ChangedChannel>();
  // A new key reloads the log after a change that may add to it.
  const [round, setRound] = useState(0);
  const close = () => setOpened(undefined);
  const done = async (changed?: ChangedChannel) => {
    if (changed?.secret) setSecret(changed);
    await reload();
    setRound((now) => now + 1);
  };
  const add = (
    <Button look="primary" needs="admin" onClick={() => setOpened({ kind: 'add' })}>
      Add channel
    </Button>
  );
  return (
    <Page
      title="Notifications"
      lead="Send alerts when a renewal fails, a certificate is about to expire, or a backup is overdue."
      actions={data?.length !== 0 && add}
    >
      {error && <Problem error={error} retry={reload} />}
      {secret && <NewSecret changed={secret} />}
      {!data && !error && <Skeleton />}
      {data?.length === 0 && (
        <Empty title="No notification channels yet" actions={add}>
          <p>Add a webhook or email channel to hear about problems long before a certificate expires.</p>
        </Empty>
      )}
      {data !== undefined && data.length > 0 && (
        <>
          <Table
            caption="Channels"
            rows={data}
            keyOf={({ name }) => name}
            columns={[
              { title: 'Name', cell: ({ name }) => name },
              { title: 'To', cell: ({ target }) => <span class="wrap">{target}</span> },
              { title: 'Events', cell: (channel) => <span class="wrap">{subscription(channel)}</span> },
              {
                title: 'Status',
                cell: (channel) => (
                  <>
                    <Status status={stateOf(channel)} />
                    {channel.last_delivery?.error != null && (
                      <div class="reason" title={channel.last_delivery.error}>
                        {channel.last_delivery.error}
                      </div>
                    )}
                  </>
                ),
              },
              {
                title: 'Actions',
                cell: (channel) => (
                  <span class="pair">
                    <Button
                      needs="admin"
                      aria-label={`Test ${channel.name}`}
                      onClick={() => setOpened({ kind: 'test', channel })}
                    >
                      Test
                    </Button>
                    <Button
                      look="quiet"
                      needs="admin"
                      aria-label={`Edit ${channel.name}`}
                      onClick={() => setOpened({ kind: 'change', channel })}
                    >
                      Edit
                    </Button>
                    <Button
                      look="quiet"
                      needs="admin"
                      aria-label={`Remove ${channel.name}`}
                      onClick={() => setOpened({ kind: 'remove', channel })}
                    >
                      Remove
                    </Button>
                  </span>
                ),
              },
            ]}
          />
          <NotificationLog key={round} channels={data.map(({ name }) => name)} />
        </>
      )}
      {opened?.kind === 'add' && <NotificationDialog onClose={close} onDone={done} />}
      {opened?.kind === 'change' && (
        <NotificationDialog channel={opened.channel} onClose={close} onDone={done} />
      )}
      {opened?.kind === 'test' && (
        <TestDialog
          name={opened.channel.name}
          onClose={() => {
            close();
            void done();
          }}
        />
      )}
      {opened?.kind === 'remove' && (
        <ConfirmDialog
          title={`Remove ${opened.channel.name}?`}
          action="Remove"
          onClose={close}
          onSubmit={async () => {
            await remove(pathOf(opened.channel.name));
            await done();
          }}
        >
          <p>Deletes the channel’s settings, delivery log and queued notifications.</p>
        </ConfirmDialog>
      )}
    </Page>
  );
}

function NewSecret({ changed: { name, secret } }: { readonly changed: ChangedChannel }) {
  return (
    <Notice tone="good" title={`Signing secret of ${name}`}>
      <p>The receiver needs this secret to verify messages. It is shown only once.</p>
      <CopyBlock text={secret ?? ''} label="Signing secret" />
    </Notice>
  );
}

function TestDialog({ name, onClose }: { readonly name: string; readonly onClose: () => void }) {
  const [isDelivered, setDelivered] = useState(false);
  const { run, isBusy, error } = useAction(async () => {
    setDelivered(false);
    await post(`${pathOf(name)}/test`);
    setDelivered(true);
  });
  return (
    <Dialog title={`Test ${name}`} onClose={onClose}>
      <p>Send a test message to this channel.</p>
      {isBusy && <Spinner label="Sending; this can take a minute" />}
      {error && <Problem error={error} />}
      {isDelivered && <Notice tone="good">{name} accepted the test message.</Notice>}
      <div class="dialog-buttons">
        <Button look="quiet" onClick={onClose}>
          Close
        </Button>
        <Button look="primary" isBusy={isBusy} onClick={() => void run()}>
          Send
        </Button>
      </div>
    </Dialog>
  );
}

function subscription({ events, certificates, digest_at }: NotificationChannel): string {
  const what = events.length === 0 ? [] : [events.map((event) => event.replace(/[._]/g, ' ')).join(', ')];
  const digest = digest_at === null ? [] : [`daily digest at ${digest_at} UTC`];
  const only = certificates.length === 0 ? [] : [`only for ${certificates.join(', ')}`];
  return [...what, ...digest, ...only].join('; ');
}

function stateOf({ disabled_at, last_delivery, waiting }: NotificationChannel): string {
  if (disabled_at !== null) return 'disabled';
  // It waits for its next attempt.
  if (last_delivery?.status === 'queued' && last_delivery.error !== null) return 'failing';
  return last_delivery?.status ?? (waiting > 0 ? 'queued' : 'unused');
}

function pathOf(name: string): string {
  return `/notification-channels/${encodeURIComponent(name)}`;
}
