/** Adds or edits a notification channel: its settings, events and certificates. */
import { useState } from 'preact/hooks';
import { FormDialog } from '../components/dialog.tsx';
import { Checkbox, TextArea, TextField } from '../components/field.tsx';
import type { ChangedChannel, NotificationChannel } from '../data/administration-shapes.ts';
import { patch, post } from '../data/api.ts';
import type { ConfigField } from './config-schema.ts';
import { KindName, KindProblem, KindSelect, KindSettings, useKindDraft } from './kind-draft.tsx';

const events = [
  ['renewal.failed', 'A renewal fails or recovers'],
  ['certificate.expiring', 'A certificate is about to expire'],
  ['api_key.expiring', 'An API key is about to expire'],
  ['private_ca.expiring', 'A private CA is about to expire'],
  ['backup.overdue', 'A scheduled backup is overdue'],
  ['disk.low', 'Disk space is low'],
  ['deployment.unhealthy', 'A deployment is failing, outdated or silent'],
  ['endpoint.unhealthy', 'An endpoint does not serve what it should'],
  ['scan.found', 'A scheduled scan found an unknown certificate'],
  ['pending_change.created', 'A change needs an approval'],
  ['certificate.issued', 'A new version is issued'],
] as const;

export function NotificationDialog({
  channel,
  onClose,
  onDone,
}: {
  /** The channel to edit; undefined to add one. */
  readonly channel?: NotificationChannel;
  readonly onClose: () => void;
  /** Receives the signing secret if the vault generated one. */
  readonly onDone: (changed: ChangedChannel) => Promise<void>;
}) {
  const draft = useKindDraft('/notification-channel-types', 'settings', channel);
  const [chosen, setChosen] = useState<readonly string[]>(
    channel?.events ?? events.slice(0, -1).map(([event]) => event),
  );
  const [certificates, setCertificates] = useState((channel?.certificates ?? []).join('\n'));
  const [digest, setDigest] = useState(channel?.digest_at ?? '');
  const [isEnabled, setEnabled] = useState(channel?.disabled_at == null);
  const [replacesSettings, setReplacesSettings] = useState(channel === undefined);
  const { type, name, isKnown, isCommandLineOnly } = draft;
  const submit = async () => {
    const subscription = {
      events: chosen,
      certificates: certificates.split(/[\s,]+/).filter(Boolean),
      digest_at: digest.trim() === '' ? null : digest.trim(),
    };
    const settings = replacesSettings && !isCommandLineOnly ? { settings: draft.values() } : {};
    const changed =
      channel === undefined
        ? await post<ChangedChannel>('/notification-channels', { name, type, ...subscription, ...settings })
        : await patch<ChangedChannel>(`/notification-channels/${encodeURIComponent(channel.name)}`, {
            ...{ ...subscription, ...settings, disabled: !isEnabled },
          });
    await onDone(changed);
  };
  return (
    <FormDialog
      title={channel === undefined ? 'Add channel' : `Edit ${channel.name}`}
      action={channel === undefined ? 'Add' : 'Save'}
      isReady={isKnown && (channel !== undefined || !isCommandLineOnly)}
      onClose={onClose}
      onSubmit={submit}
    >
      {(errorOf) => (
        <>
          <KindProblem draft={draft} />
          {channel === undefined && (
            <KindSelect draft={draft} errorOf={errorOf} plural="Channels" command="vault notification add" />
          )}
          {channel === undefined && isKnown && !isCommandLineOnly && (
            <KindName draft={draft} errorOf={errorOf} />
          )}
          {channel !== undefined && !isCommandLineOnly && (
            <Checkbox
              label="Replace the settings"
              hint="Replaces all settings, including credentials."
              isChecked={replacesSettings}
              onChecked={setReplacesSettings}
            />
          )}
          {replacesSettings && <KindSettings draft={draft} errorOf={errorOf} shown={withOptionalSecret} />}
          {isKnown && (channel !== undefined || !isCommandLineOnly) && (
            <>
              <fieldset class="card stack">
                <legend>Notify when</legend>
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
                hint="Notify only about certificates whose names match. One pattern per line, such as shop*."
                rows={2}
                value={certificates}
                error={errorOf('certificates')}
                onValue={setCertificates}
              />
              <TextField
                label="Daily digest at (optional)"
                hint="A time in UTC, such as 07:00. The vault sends no digest on days without events."
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

/** The secret is optional, because the vault generates one if it is missing. */
function withOptionalSecret(field: ConfigField): ConfigField {
  return field.name === 'secret'
    ? { ...field, isRequired: false, hint: 'whsec_ and Base64. Leave empty to let the vault generate one.' }
    : field;
}
