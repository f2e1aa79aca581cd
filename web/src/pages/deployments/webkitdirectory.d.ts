import "react";

declare module "react" {
  interface InputHTMLAttributes<T> {
    /** Lets people choose a folder. All browsers know it, and React passes it on. */
    webkitdirectory?: "";
  }
}
