/** Adds a deploy target, or replaces its settings. Its type determines the settings and credentials. */
import { FormDialog } from '../components/dialog.tsx';
import { Notice } from '../components/notice.tsx';
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
  const hasForm = isKnown && !isCommandLineOnly;
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
      isReady={hasForm}
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
              labelOf={({ type: short, title }) => (/^[A-Z]/.test(title) ? title : `${short}: ${title}`)}
            />
          ) : isCommandLineOnly ? (
            <Notice tone="warning">
              Targets of this type run programs. For safety, change them on the vault’s host:{' '}
              <code>vault deploy-target update --name {name} --secret-file</code>
            </Notice>
          ) : (
            <p>
              Deletes the current settings with their credentials. The vault then installs all certificates
              again.
            </p>
          )}
          {hasForm && (
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
