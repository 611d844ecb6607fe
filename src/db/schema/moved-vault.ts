/** What a database says to a process that still writes to it after its vault was moved. */

/** Stands in SQL as a text. */
export const movedSentence = 'the vault was moved to another database';

export const movedHint =
  'Stop this process and start it again: then it says where the vault went. Nothing was changed.';
