/** Options of the installer: destination, schedule, reload command, and owner and mode of the files. */
import { TextField } from '../components/field.tsx';
import type { InstallerErrors } from './installer-checks.ts';
import { hasKeystore, type InstallerChoices } from './shell-command.ts';

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
      {hasKeystore(choices.files) && (
        <TextField
          {...plain}
          label="Password file of the keystore"
          hint="On the machine: its first line is the password. Java accepts only ASCII."
          placeholder="/root/keystore-password"
          value={choices.keystorePasswordFile}
          error={errors.keystorePasswordFile}
          onValue={(keystorePasswordFile) => onChange({ keystorePasswordFile })}
        />
      )}
      <TextField
        {...plain}
        label="Destination"
        hint="A directory owned by the user who runs the cron job."
        value={choices.destination}
        error={errors.destination}
        onValue={(destination) => onChange({ destination })}
      />
      <TextField
        {...plain}
        label="Reload command"
        hint="Runs when files change, and again at each run until it succeeds."
        value={choices.reloadCommand}
        error={errors.reloadCommand}
        onValue={(reloadCommand) => onChange({ reloadCommand })}
      />
      <div class="columns">
        <TextField
          {...plain}
          label="Schedule"
          hint="Five cron fields. Default: once a day at a random time."
          placeholder="17 3 * * *"
          value={choices.schedule}
          error={errors.schedule}
          onValue={(schedule) => onChange({ schedule })}
        />
        <TextField
          {...plain}
          label="Verify at"
          hint="HOST:PORT. After a reload, the job checks that this server presents the new certificate."
          value={choices.verify}
          error={errors.verify}
          onValue={(verify) => onChange({ verify })}
        />
        <TextField
          {...plain}
          label="File owner"
          hint="Default: the user who runs the cron job."
          value={choices.owner}
          error={errors.owner}
          onValue={(owner) => onChange({ owner })}
        />
        <TextField
          {...plain}
          label="File group"
          value={choices.group}
          error={errors.group}
          onValue={(group) => onChange({ group })}
        />
        <TextField
          {...plain}
          label="File mode"
          hint="Octal. Default: 0644. Private keys always get 0600."
          placeholder="0644"
          value={choices.mode}
          error={errors.mode}
          onValue={(mode) => onChange({ mode: mode.trim() })}
        />
      </div>
    </>
  );
}
