/** Adds a DNS provider: its type says which settings and credentials it needs. */
import { useState } from 'preact/hooks';
import { post } from '../api.ts';
import { domainsIn } from '../certificate-checks.ts';
import { FormDialog } from '../components/dialog.tsx';
import { TextArea, TextField } from '../components/field.tsx';
import { Notice, Problem } from '../components/notice.tsx';
import { Select } from '../components/select.tsx';
import { type ConfigSchema, configFields, configValues } from '../config-schema.ts';
import { useResource } from '../resource.ts';
import { Setting } from './setting.tsx';

type ProviderType = {
  readonly type: string;
  readonly title: string;
  readonly config: ConfigSchema;
  readonly command_line_only: boolean;
};

export function DnsProviderDialog({
  onClose,
  onDone,
}: {
  readonly onClose: () => void;
  readonly onDone: () => Promise<void>;
}) {
  const { data: types = [], error: typesError } = useResource<readonly ProviderType[]>('/dns-provider-types');
  const [type, setType] = useState('');
  const [name, setName] = useState('');
  const [zones, setZones] = useState('');
  const [typed, setTyped] = useState<Readonly<Record<string, string>>>({});
  const chosen = types.find((known) => known.type === type);
  const fields = chosen === undefined ? [] : configFields(chosen.config);
  const isElsewhere = chosen?.command_line_only === true;
  const submit = async () => {
    await post('/dns-providers', {
      name,
      type,
      zones: domainsIn(zones),
      config: configValues(fields, typed),
    });
    await onDone();
  };
  return (
    <FormDialog
      title="Add a DNS provider"
      action="Add"
      isReady={chosen !== undefined && !isElsewhere}
      onClose={onClose}
      onSubmit={submit}
    >
      {(errorOf) => (
        <>
          {typesError && <Problem error={typesError} />}
          <Select
            label="Type"
            value={type}
            error={errorOf('type')}
            onValue={(value) => {
              setType(value);
              setTyped({});
              if (name === '' || name === type) setName(value);
            }}
            choices={[{ value: '', label: 'Choose one' }, ...choicesOf(types)]}
          />
          {isElsewhere && (
            <Notice tone="warning">
              Providers of this type start programs, and are added on the vault’s own machine only: vault
              dns-provider add --type {type}
            </Notice>
          )}
          {chosen && !isElsewhere && (
            <>
              <TextField
                label="Name"
                value={name}
                autocomplete="off"
                spellcheck={false}
                error={errorOf('name')}
                onValue={setName}
              />
              <TextArea
                label="Zones"
                hint="Those that it manages, one in each line, such as example.com."
                rows={2}
                value={zones}
                error={errorOf('zones')}
                onValue={setZones}
              />
              {fields.map((field) => (
                <Setting
                  key={field.name}
                  field={field}
                  value={typed[field.name] ?? ''}
                  error={errorOf(`config.${field.name}`)}
                  onValue={(value) => setTyped((now) => ({ ...now, [field.name]: value }))}
                />
              ))}
            </>
          )}
        </>
      )}
    </FormDialog>
  );
}

function choicesOf(types: readonly ProviderType[]) {
  return types
    .map(({ type, title }) => ({ value: type, label: title.charAt(0).toUpperCase() + title.slice(1) }))
    .toSorted((one, other) => one.label.localeCompare(other.label));
}
