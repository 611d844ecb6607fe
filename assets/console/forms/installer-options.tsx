/** Where the installer puts the files, when it looks for new ones, and what happens then. */
import { TextField } from '../components/field.tsx';
import type { InstallerChoices } from '../shell-command.ts';

export function InstallerOptions({
  choices,
  onChange,
}: {
  readonly choices: InstallerChoices;
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
        onValue={(destination) => onChange({ destination })}
      />
      <TextField
        {...plain}
        label="Reload command"
        hint="Runs when files have changed, and again until it succeeds."
        value={choices.reloadCommand}
        onValue={(reloadCommand) => onChange({ reloadCommand })}
      />
      <div class="columns">
        <TextField
          {...plain}
          label="Schedule"
          hint="Five fields of cron. Empty: once a day, at a minute chosen at random."
          placeholder="17 3 * * *"
          value={choices.schedule}
          onValue={(schedule) => onChange({ schedule })}
        />
        <TextField
          {...plain}
          label="Verify at"
          hint="HOST:PORT: after a reload, is the new certificate served there?"
          value={choices.verify}
          onValue={(verify) => onChange({ verify })}
        />
        <TextField
          {...plain}
          label="Owner of the files"
          hint="Empty for the user of the job."
          value={choices.owner}
          onValue={(owner) => onChange({ owner })}
        />
        <TextField
          {...plain}
          label="Group of the files"
          value={choices.group}
          onValue={(group) => onChange({ group })}
        />
      </div>
    </>
  );
}
