/* LLVM's options of the whole process; see llvm_options.c. */
#ifndef BLK_LLVM_OPTIONS_H
#define BLK_LLVM_OPTIONS_H

void llvm_options_once(void); /* before the first target machine; any thread, any number of times */

#endif
