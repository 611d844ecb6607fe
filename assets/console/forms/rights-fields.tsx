/** What an administrator may do: the role, and what confines it. */
import { type Role, roles } from '../../../src/base/role.ts';
import { TextField } from '../components/field.tsx';
import { Select } from '../components/select.tsx';
import type { RightsDraft } from './rights-draft.ts';

const roleNames: Readonly<Record<Role, string>> = {
  viewer: 'viewer: reads everything but private keys',
  operator: 'operator: also manages certificates',
  admin: 'admin: may do everything',
};

export function RightsFields({
  rights,
  errorOf,
  onRights,
}: {
  readonly rights: RightsDraft;
  readonly errorOf: (field: string) => string | undefined;
  readonly onRights: (rights: RightsDraft) => void;
}) {
  const { role, reach, profiles } = rights;
  return (
    <>
      <Select
        label="Role"
        value={role}
        choices={roles.map((one) => ({ value: one, label: roleNames[one] }))}
        onValue={(one) => onRights({ ...rights, role: one as Role })}
      />
      {role !== 'admin' && (
        <TextField
          label="Reach (optional)"
          hint="Labels such as team=web, separated by commas. They then see and change only what has one of them."
          value={reach}
          error={errorOf('reach')}
          onValue={(text) => onRights({ ...rights, reach: text })}
        />
      )}
      {role === 'operator' && (
        <TextField
          label="Profiles (optional)"
          hint="Profiles of private CAs such as local-ca/web, separated by commas. They then have certificates issued only with one of them."
          value={profiles}
          error={errorOf('profiles')}
          onValue={(text) => onRights({ ...rights, profiles: text })}
        />
      )}
    </>
  );
}
