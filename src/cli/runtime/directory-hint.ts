/** What to do when a CA's directory cannot be had: the CA's part of the trouble is in the error, the command's part here. */
import { AcmeError } from '../../acme/acme-error.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { OutboundError } from '../../net/outbound-http.ts';

/** Runs `work`; an AcmeError gets a hint that names the option to look at. */
export async function withDirectoryHint(work: () => Promise<void>, hasCaFile: boolean): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof AcmeError) || error.kind === 'aborted') throw error;
    throw new OperatorError(error.message, { hint: hintFor(error, hasCaFile), cause: error });
  }
}

function hintFor({ kind, message, cause }: AcmeError, hasCaFile: boolean): string {
  if (cause instanceof OutboundError && cause.reason === 'untrusted') {
    return hasCaFile
      ? 'The certificates of --ca-file do not vouch for it; take the root of the chain that this server sends.'
      : 'Where the CA has a root of its own, give that with --ca-file.';
  }
  if (cause instanceof OutboundError && cause.reason === 'refused') {
    return 'Where the CA is yours, allow it in vault.yaml or by VAULT_ALLOW_OUTBOUND, also for "vault serve".';
  }
  if (kind === 'network' || kind === 'timeout') {
    return 'Look at the address, the firewall, and HTTPS_PROXY and NO_PROXY where there is a proxy.';
  }
  if (/must use https/.test(message)) return 'Write https:// in --directory.';
  return "Look at --directory: it is the whole URL of the CA's ACME directory, as its documentation has it.";
}
