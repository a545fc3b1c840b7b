// A modal dialog, built on the browser's own: it traps the focus, closes on Escape and restores the focus. On a phone
// it is a bottom sheet.
import { X } from './icons.ts'
import { type ReactNode, useLayoutEffect, useRef } from 'react'
import { Button } from './button.tsx'

export type DialogProps = {
  readonly title: string
  readonly onClose: () => void
  readonly children: ReactNode
  /** Without a header, for a dialog that begins with a field. */
  readonly bare?: boolean
  readonly wide?: boolean
}

export function Dialog({ title, onClose, children, bare = false, wide = false }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  // Closed while still in the document, so that the browser restores the focus.
  useLayoutEffect(() => {
    const open = dialog.current
    open?.showModal()
    // Focus the first field: the browser would focus the close button.
    open?.querySelector<HTMLElement>('input, textarea, select')?.focus()
    return () => open?.close()
  }, [])
  return (
    <dialog
      ref={dialog}
      className={`dialog${bare ? ' bare' : ''}${wide ? ' wide' : ''}`}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault()
        onClose()
      }}
      onClick={(event) => {
        // A click outside the dialog.
        if (event.target === dialog.current) onClose()
      }}
    >
      <div className="dialog-body">
        {bare ? null : (
          <header className="dialog-head">
            <h2>{title}</h2>
            <Button kind="quiet" label="Close" onPress={onClose}>
              <X size={18} aria-hidden />
            </Button>
          </header>
        )}
        {children}
      </div>
    </dialog>
  )
}
