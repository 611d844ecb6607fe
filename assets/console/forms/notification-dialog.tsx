/** Adds a notification channel, or changes one: who is told, of what, and of which certificates. */
import { useState } from 'preact/hooks';
import type { ChangedChannel, NotificationChannel } from '../administration-shapes.ts';
import { patch, post } from '../api.ts';
import { FormDialog } from '../components/dialog.tsx';
import { Checkbox, TextArea, TextField } from '../components/field.tsx';
import type { ConfigField } from '../config-schema.ts';
import { KindName, KindProblem, KindSelect, KindSettings, useKindDraft } from './kind-draft.tsx';

const events = [
  ['renewal.failed', 'A renewal fails, and when it works again'],
  ['certificate.expiring', 'A certificate is about to expire'],
  ['api_key.expiring', 'An API key is about to expire'],
  ['backup.overdue', 'A scheduled backup is overdue'],
  ['disk.low', 'Disk space is low'],
  ['certificate.issued', 'A new version is issued'],
] as const;

export function NotificationDialog({
  channel,
  onClose,
  onDone,
}: {
  /** The one to change; a new one where undefined. */
  readonly channel?: NotificationChannel;
  readonly onClose: () => void;
  /** Gets the signing secret where one was made. */
  readonly onDone: (changed: ChangedChannel) => Promise<void>;
}) {
  const draft = useKindDraft('/notification-channel-types', 'settings', channel);
  const [chosen, setChosen] = useState<readonly string[]>(
    channel?.events ?? events.slice(0, 4).map(([event]) => event),
  );
  const [certificates, setCertificates] = useState((channel?.certificates ?? []).join('\n'));
  const [digest, setDigest] = useState(channel?.digest_at ?? '');
  const [isEnabled, setEnabled] = useState(channel?.disabled_at == null);
  const [isAnew, setAnew] = useState(channel === undefined);
  const { type, name, isKnown, isElsewhere } = draft;
  const submit = async () => {
    const told = {
      events: chosen,
      certificates: certificates.split(/[\s,]+/).filter(Boolean),
      digest_at: digest.trim() === '' ? null : digest.trim(),
    };
    const settings = isAnew && !isElsewhere ? { settings: draft.values() } : {};
    const changed =
      channel === undefined
        ? await post<ChangedChannel>('/notification-channels', { name, type, ...told, ...settings })
        : await patch<ChangedChannel>(`/notification-channels/${encodeURIComponent(channel.name)}`, {
            ...{ ...told, ...settings, disabled: !isEnabled },
          });
    await onDone(changed);
  };
  return (
    <FormDialog
      title={channel === undefined ? 'Add a channel' : `Change ${channel.name}`}
      action={channel === undefined ? 'Add' : 'Change'}
      isReady={isKnown && (channel !== undefined || !isElsewhere)}
      onClose={onClose}
      onSubmit={submit}
    >
      {(errorOf) => (
        <>
          <KindProblem draft={draft} />
          {channel === undefined && (
            <KindSelect draft={draft} errorOf={errorOf} plural="Channels" command="vault notification add" />
          )}
          {channel === undefined && isKnown && !isElsewhere && <KindName draft={draft} errorOf={errorOf} />}
          {channel !== undefined && !isElsewhere && (
            <Checkbox
              label="Set it up anew"
              hint="All its settings are replaced, credentials too."
              isChecked={isAnew}
              onChecked={setAnew}
            />
          )}
          {isAnew && <KindSettings draft={draft} errorOf={errorOf} shown={withSpareSecret} />}
          {isKnown && (channel !== undefined || !isElsewhere) && (
            <>
              <fieldset class="card stack">
                <legend>Told when</legend>
                {events.map(([event, label]) => (
                  <Checkbox
                    key={event}
                    label={label}
                    isChecked={chosen.includes(event)}
                    onChecked={(isChecked) =>
                      setChosen((now) =>
                        isChecked ? [...now, event] : now.filter((other) => other !== event),
                      )
                    }
                  />
                ))}
              </fieldset>
              <TextArea
                label="Certificates (optional)"
                hint="Only those whose names fit, one pattern in each line, such as shop*. All of them where there is none."
                rows={2}
                value={certificates}
                error={errorOf('certificates')}
                onValue={setCertificates}
              />
              <TextField
                label="Daily digest at (optional)"
                hint="A time of the day in UTC, such as 07:00. Without anything to say, none is sent."
                value={digest}
                error={errorOf('digest_at')}
                onValue={setDigest}
              />
              {channel !== undefined && (
                <Checkbox label="Enabled" isChecked={isEnabled} onChecked={setEnabled} />
              )}
            </>
          )}
        </>
      )}
    </FormDialog>
  );
}

/** The vault makes a signing secret where none is given. */
function withSpareSecret(field: ConfigField): ConfigField {
  return field.name === 'secret'
    ? { ...field, isRequired: false, hint: 'whsec_ and Base64. The vault makes one where it is empty.' }
    : field;
}
