/** Settings of administration over HTTP: how long sessions last, and what needs more care. */
import { defaultSessionLimits, type SessionLimits } from '../../domain/access/sessions.ts';
import { type Found, sessionDuration, truth } from './setting-values.ts';

export const administrationOptions = {
  'session-idle': {
    type: 'string',
    valueHint: 'DURATION',
    description: 'end console sessions after this much inactivity (default: 30m)',
  },
  'session-lifetime': {
    type: 'string',
    valueHint: 'DURATION',
    description: 'end console sessions after this long (default: 12h)',
  },
  'hide-private-keys': {
    type: 'boolean',
    description: 'never show private keys in the console; API keys and the command line read them',
  },
  'second-approval': {
    type: 'boolean',
    description: 'destructive changes over HTTP need the approval of a second administrator',
  },
  'require-second-factor': {
    type: 'boolean',
    description: 'people with a password need a passkey or an authenticator app, too, before anything else',
  },
} as const;

export type AdministrationSettings = {
  readonly sessionLimits: SessionLimits;
  /** Whether destructive changes over HTTP need the approval of a second administrator. */
  readonly secondApproval: boolean;
  /** Whether people with a password can do nothing before they have set up a second factor. */
  readonly requireSecondFactor: boolean;
};

/** Throws OperatorError that names the invalid setting. */
export function administrationSettings(
  setting: (name: keyof typeof administrationOptions) => Found | undefined,
): AdministrationSettings {
  return {
    sessionLimits: {
      idle: sessionDuration(setting('session-idle'), defaultSessionLimits.idle),
      lifetime: sessionDuration(setting('session-lifetime'), defaultSessionLimits.lifetime),
      hidesPrivateKeys: truth(setting('hide-private-keys')),
    },
    secondApproval: truth(setting('second-approval')),
    requireSecondFactor: truth(setting('require-second-factor')),
  };
}
