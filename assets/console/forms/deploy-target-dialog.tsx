/** Adds a deploy target, or replaces its settings. Its type determines the settings and credentials. */
import { FormDialog } from '../components/dialog.tsx';
import { patch, post } from '../data/api.ts';
import { KindName, KindProblem, KindSelect, KindSettings, useKindDraft } from './kind-draft.tsx';

export function DeployTargetDialog({
  target,
  onClose,
  onDone,
}: {
  /** The one to change. */
  readonly target?: { readonly name: string; readonly type: string };
  readonly onClose: () => void;
  readonly onDone: (name: string) => Promise<void>;
}) {
  const draft = useKindDraft('/deploy-target-types', 'settings', target);
  const { type, name, isKnown, isCommandLineOnly } = draft;
  const submit = async () => {
    const settings = draft.values();
    if (target === undefined) await post('/deploy-targets', { name, type, settings });
    else await patch(`/deploy-targets/${encodeURIComponent(target.name)}`, { settings });
    await onDone(name);
  };
  return (
    <FormDialog
      title={target === undefined ? 'Add deploy target' : `Replace the settings of ${target.name}`}
      action={target === undefined ? 'Add' : 'Replace'}
      isReady={isKnown && !isCommandLineOnly}
      onClose={onClose}
      onSubmit={submit}
    >
      {(errorOf) => (
        <>
          <KindProblem draft={draft} />
          {target === undefined ? (
            <KindSelect
              draft={draft}
              errorOf={errorOf}
              plural="Targets"
              command="vault deploy-target add --type"
            />
          ) : (
            <p>The settings stored now, credentials included, are deleted. Everything is installed again.</p>
          )}
          {isKnown && !isCommandLineOnly && (
            <>
              {target === undefined && <KindName draft={draft} errorOf={errorOf} />}
              <KindSettings draft={draft} errorOf={errorOf} />
            </>
          )}
        </>
      )}
    </FormDialog>
  );
}
