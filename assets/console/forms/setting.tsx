/** One setting of a DNS provider, channel or deploy target, from the JSON Schema of its type. */
import { Checkbox, TextArea, TextField } from '../components/field.tsx';
import { Select } from '../components/select.tsx';
import type { ConfigField } from './config-schema.ts';

export function Setting({
  field,
  value,
  error,
  onValue,
}: {
  readonly field: ConfigField;
  readonly value: string;
  readonly error: string | undefined;
  readonly onValue: (value: string) => void;
}) {
  const { isRequired, isSecret, isLong, kind, choices, hint } = field;
  const label = isRequired || field.group ? field.label : `${field.label} (optional)`;
  const known = { label, value, error, onValue, ...(hint !== undefined && { hint }) };
  if (kind === 'switch') {
    return (
      <Checkbox
        label={label}
        error={error}
        isChecked={value !== ''}
        onChecked={(isChecked) => onValue(isChecked ? 'true' : '')}
      />
    );
  }
  if (choices !== undefined) {
    const listed = choices.map((choice) => ({ value: choice, label: choice }));
    return (
      <Select {...known} choices={[{ value: '', label: isRequired ? 'Select' : 'Default' }, ...listed]} />
    );
  }
  if (isLong) return <TextArea {...known} isCode />;
  return <TextField {...known} type={isSecret ? 'password' : kind === 'number' ? 'number' : 'text'} />;
}
