/** Adds a notification channel, or changes one: who is told, of what, and of which certificates. */
import { useState } from 'preact/hooks';
import type { ChangedChannel, NotificationChannel } from '../administration-shapes.ts';
import { patch, post } from '../api.ts';
import { FormDialog } from '../components/dialog.tsx';
import { Checkbox, TextArea, TextField } from '../components/field.tsx';
import { Notice, Problem } from '../components/notice.tsx';
import { Select } from '../components/select.tsx';
import { type ConfigSchema, configFields, configValues } from '../config-schema.ts';
import { useResource } from '../resource.ts';
import { Setting } from './setting.tsx';

type ChannelType = {
  readonly type: string;
  readonly title: string;
  readonly settings: ConfigSchema;
  readonly command_line_only: boolean;
};

const events = [
  ['renewal.failed', 'A renewal fails, and when it works again'],
  ['certificate.expiring', 'A certificate is about to expire'],
  ['api_key.expiring', 'An API key is about to expire'],
  ['backup.overdue', 'A scheduled backup is overdue'],
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
  const { data: types = [], error: typesError } = useResource<readonly ChannelType[]>(
    '/notification-channel-types',
  );
  const [type, setType] = useState(channel?.type ?? '');
  const [name, setName] = useState(channel?.name ?? '');
  const [chosen, setChosen] = useState<readonly string[]>(
    channel?.events ?? events.slice(0, 4).map(([event]) => event),
  );
  const [certificates, setCertificates] = useState((channel?.certificates ?? []).join('\n'));
  const [digest, setDigest] = useState(channel?.digest_at ?? '');
  const [isEnabled, setEnabled] = useState(channel?.disabled_at == null);
  const [isAnew, setAnew] = useState(channel === undefined);
  const [typed, setTyped] = useState<Readonly<Record<string, string>>>({});
  const kind = types.find((known) => known.type === type);
  const isElsewhere = kind?.command_line_only === true;
  const fields = kind === undefined || isElsewhere ? [] : configFields(kind.settings);
  const submit = async () => {
    const told = {
      events: chosen,
      certificates: certificates.split(/[\s,]+/).filter(Boolean),
      digest_at: digest.trim() === '' ? null : digest.trim(),
    };
    const settings = isAnew && !isElsewhere ? { settings: configValues(withSecret(fields), typed) } : {};
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
      isReady={kind !== undefined && (channel !== undefined || !isElsewhere)}
      onClose={onClose}
      onSubmit={submit}
    >
      {(errorOf) => (
        <>
          {typesError && <Problem error={typesError} />}
          {channel === undefined && (
            <Select
              label="Type"
              value={type}
              error={errorOf('type')}
              onValue={(value) => {
                setType(value);
                setTyped({});
                if (name === '' || name === type) setName(value);
              }}
              choices={[{ value: '', label: 'Choose one' }, ...types.map(choiceOf)]}
            />
          )}
          {channel === undefined && isElsewhere && (
            <Notice tone="warning">
              Channels of this type start programs, and are added on the vault’s own machine only: vault
              notification add {type}
            </Notice>
          )}
          {channel === undefined && kind !== undefined && !isElsewhere && (
            <TextField
              label="Name"
              value={name}
              autocomplete="off"
              spellcheck={false}
              error={errorOf('name')}
              onValue={setName}
            />
          )}
          {channel !== undefined && !isElsewhere && (
            <Checkbox
              label="Set it up anew"
              hint="All its settings are replaced, credentials too."
              isChecked={isAnew}
              onChecked={setAnew}
            />
          )}
          {isAnew &&
            withSecret(fields).map((field) => (
              <Setting
                key={field.name}
                field={field}
                value={typed[field.name] ?? ''}
                error={errorOf(`settings.${field.name}`)}
                onValue={(value) => setTyped((now) => ({ ...now, [field.name]: value }))}
              />
            ))}
          {kind !== undefined && (channel !== undefined || !isElsewhere) && (
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
                autocomplete="off"
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
function withSecret(fields: ReturnType<typeof configFields>): ReturnType<typeof configFields> {
  return fields.map((field) =>
    field.name === 'secret'
      ? { ...field, isRequired: false, hint: 'whsec_ and Base64. The vault makes one where it is empty.' }
      : field,
  );
}

function choiceOf({ type, title }: ChannelType) {
  return { value: type, label: title.charAt(0).toUpperCase() + title.slice(1) };
}
