/** Options shared by the issuer commands. */

export const nameOption = {
  name: {
    type: 'string',
    valueHint: 'NAME',
    required: true,
    positional: 'or-flag',
    names: 'issuers',
    description: 'the name of the issuer',
  },
} as const;

export const caOptions = {
  directory: { type: 'string', valueHint: 'URL', description: 'the ACME directory URL of the CA' },
  email: { type: 'string', valueHint: 'ADDRESS', description: 'the contact address for the CA' },
  'eab-kid': { type: 'string', valueHint: 'ID', description: 'the key id for external account binding' },
  'eab-hmac-key-file': {
    type: 'string',
    valueHint: 'FILE',
    description: 'a file with the HMAC key for external account binding, in base64url; - for standard input',
  },
  'ca-file': {
    type: 'string',
    valueHint: 'FILE',
    description: 'PEM certificates to trust for HTTPS to the CA, instead of the public CAs',
  },
  profile: { type: 'string', valueHint: 'PROFILE', description: 'the certificate profile of the CA' },
  'preferred-chain': {
    type: 'string',
    valueHint: 'CN',
    description: 'prefer the chain whose root has this common name',
  },
  'accept-terms': { type: 'boolean', description: 'accept the terms of service of the CA' },
} as const;
