import { Link } from "@tanstack/react-router";
import { Button } from "../ui/button.tsx";
import { EmptyState } from "../ui/states.tsx";
import { Page } from "./header.tsx";

export function NoSuchPage() {
  return (
    <Page title="No such page">
      <EmptyState
        title="Nothing is at this address"
        action={
          <Button asChild>
            <Link to="/">Go to the first page</Link>
          </Button>
        }
      >
        What was here may have been deleted, or the address was cut when it was copied.
      </EmptyState>
    </Page>
  );
}
