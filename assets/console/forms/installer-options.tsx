/** Where the installer puts the files, when it looks for new ones, and what happens then. */
import { TextField } from '../components/field.tsx';
import type { InstallerErrors } from '../installer-checks.ts';
import type { InstallerChoices } from '../shell-command.ts';

export function InstallerOptions({
  choices,
  errors,
  onChange,
}: {
  readonly choices: InstallerChoices;
  readonly errors: InstallerErrors;
  readonly onChange: (changes: Partial<InstallerChoices>) => void;
}) {
  const plain = { spellcheck: false, autocomplete: 'off' } as const;
  return (
    <>
      <TextField
        {...plain}
        label="Destination"
        hint="A directory that belongs to whoever runs the job."
        value={choices.destination}
        error={errors.destination}
        onValue={(destination) => onChange({ destination })}
      />
      <TextField
        {...plain}
        label="Reload command"
        hint="Runs when files have changed, and again until it succeeds."
        value={choices.reloadCommand}
        error={errors.reloadCommand}
        onValue={(reloadCommand) => onChange({ reloadCommand })}
      />
      <div class="columns">
        <TextField
          {...plain}
          label="Schedule"
          hint="Five fields of cron. Empty: once a day, at a minute chosen at random."
          placeholder="17 3 * * *"
          value={choices.schedule}
          error={errors.schedule}
          onValue={(schedule) => onChange({ schedule })}
        />
        <TextField
          {...plain}
          label="Verify at"
          hint="HOST:PORT: after a reload, is the new certificate served there?"
          value={choices.verify}
          error={errors.verify}
          onValue={(verify) => onChange({ verify })}
        />
        <TextField
          {...plain}
          label="Owner of the files"
          hint="Empty for the user of the job."
          value={choices.owner}
          error={errors.owner}
          onValue={(owner) => onChange({ owner })}
        />
        <TextField
          {...plain}
          label="Group of the files"
          value={choices.group}
          error={errors.group}
          onValue={(group) => onChange({ group })}
        />
        <TextField
          {...plain}
          label="Mode of the files"
          hint="Octal. Empty: 0644. Private keys are always 0600."
          placeholder="0644"
          value={choices.mode}
          error={errors.mode}
          onValue={(mode) => onChange({ mode: mode.trim() })}
        />
      </div>
    </>
  );
}
